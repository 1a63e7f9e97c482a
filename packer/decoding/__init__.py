"""Decoding: one file per picture format. What is doubtful is refused."""
