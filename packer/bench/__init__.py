"""Benchmarks of a pack on this machine: which loader reads it fastest."""
