"""Wide networks: interpolation, from lazy to rich, the mean field."""
