"""Descent in steps and as a flow: what knows no network."""
