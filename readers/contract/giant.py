"""`GIANT`: the bytes above which a row, or a field of it, is not in memory as a whole."""

from __future__ import annotations

GIANT = 256 << 20
"""Tests lower it, so ask this module for it each time."""
