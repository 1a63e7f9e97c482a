"""The fields of a build before it starts: a module for each kind of field, which has the name of the kind.

A kind says how its files are read, which headers it refuses, and what is stored of it.
"""
