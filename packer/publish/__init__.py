"""Publishing: files appear whole or not at all, under a lock."""
