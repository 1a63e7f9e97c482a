"""Drills: what the packer does when things go wrong, counted."""
