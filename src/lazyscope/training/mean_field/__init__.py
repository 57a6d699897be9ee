"""Networks as measures, held by particles."""
