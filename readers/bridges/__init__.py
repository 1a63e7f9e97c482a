"""Bridges, with which trainers of other libraries open a pack: one file for each library, named after it.

A file here imports its library, and only a file here may import it: who uses it has the library. Each starts with the
lines to paste. `tools/trainers` trains with each, and compares it with the loader of the library itself.
"""
