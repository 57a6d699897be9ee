"""What can be asked, and how: options from declarations, grids, plans, and how long an answer takes."""
