"""Attacks on lazyscope: random commands and calls, full discs, kills, cut networks. `make soak` runs them all.

One file is one attack: a function `attack(tally, rng, deadline)` that tries things until it has done enough or its
deadline has passed. Whatever it tries follows from the seed; the table at the end names seed, tries and failures.
"""
