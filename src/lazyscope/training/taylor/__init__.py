"""Taylor models of a network, and training under random signs."""
