"""Ridge regression at given n, N and d: deterministic equivalents, which need a spectrum and no asymptotics."""
