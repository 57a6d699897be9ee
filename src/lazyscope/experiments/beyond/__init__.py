"""Beyond linearization (Bai and Lee 2020): coupling, landscape, expressivity, sample complexity."""
