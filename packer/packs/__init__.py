"""Finished packs: verify, repair, compare, stage, list and roll back."""
