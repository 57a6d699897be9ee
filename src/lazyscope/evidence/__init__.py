"""Evidence: a claim is one implemented theorem or method; the registry finds the one that serves a pair."""
