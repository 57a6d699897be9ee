"""Ridge regression at given n, N and d: what samples and neurons buy."""
