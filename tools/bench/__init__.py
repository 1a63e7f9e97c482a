"""Benchmarks: what the commands cost, against what the machine can give."""
