"""The figures of Limitations of Lazy Training."""
