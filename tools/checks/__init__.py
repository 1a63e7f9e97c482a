"""Checks of the code itself: its structure and its language."""
