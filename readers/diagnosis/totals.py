"""`Totals`: where the time of all steps went."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Totals:
    """Seconds and counts of all steps so far."""

    passes: int = 0
    steps: int = 0
    starting: float = 0.0
    """Until the first batch of each pass was there, and from the last one to the pass's end."""
    waiting: float = 0.0
    """For every other batch."""
    copying: float = 0.0
    """Bringing batches to the device and finishing them, where `to_device` does that."""
    computing: float = 0.0
    """In the user's hands."""
    gaps: int = 0
    """Steps of which it is known how long the GPU waited before them."""
    idle: float = 0.0
    """How long the GPU waited in all of these."""
    idle_steps: int = 0
    """In how many of these it did."""
