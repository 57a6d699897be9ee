"""The network lens: how lazily a network was trained."""
