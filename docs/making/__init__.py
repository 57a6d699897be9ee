"""What the pages are made of that the code knows: tables, cards, drawings, fonts, notebooks."""
