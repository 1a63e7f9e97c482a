"""The recipe: everything that decides the bytes, and how rows are cut into shards."""
