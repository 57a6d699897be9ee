"""What more rows, neurons and ridge would do to the error on a user's own data, from one kernel matrix."""
