"""Views of training in time: gradient flow and SGD, and what an output scale does to where they end."""
