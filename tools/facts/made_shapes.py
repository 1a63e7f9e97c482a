"""Polygons of all sorts, the same for a seed: convex, crossing themselves, thin, tiny, and over the border."""

from __future__ import annotations

import math
from random import Random

Points = list[list[float]]
SORTS = ("convex", "star", "crossing", "thin", "tiny", "outside", "box", "spikes")


def polygon(random: Random, height: int, width: int, digits: int) -> Points:
    """Return a polygon of a sort drawn by chance. Coordinates have as many digits; with 0 they are whole numbers."""
    sort = random.choice(SORTS)
    points = _points(sort, random, height, width)
    return [
        [round(x, digits) if digits else math.floor(x), round(y, digits) if digits else math.floor(y)]
        for x, y in points
    ]


def _points(sort: str, random: Random, height: int, width: int) -> list[tuple[float, float]]:
    x, y = random.uniform(0, width), random.uniform(0, height)
    radius = random.uniform(2, min(height, width) / 2)
    if sort == "box":
        return [(x, y), (x + radius, y), (x + radius, y + radius / 2), (x, y + radius / 2)]
    if sort == "thin":
        return [(x, y), (x + radius, y + radius * 1.1), (x + radius + 1, y + radius * 1.1)]
    if sort == "crossing":
        return [(random.uniform(-5, width + 5), random.uniform(-5, height + 5)) for _ in range(random.randint(3, 9))]
    if sort == "tiny":
        radius = random.uniform(0.1, 1.5)
    if sort == "outside":
        x, y = random.choice([(0, y), (width, y), (x, 0), (x, height)])
    count = random.randint(3, 24)
    turns = 2 if sort == "star" and count % 2 else 1
    reach = [radius * (random.uniform(0.2, 1) if sort == "spikes" else 1) for _ in range(count)]
    angles = [2 * math.pi * turns * index / count for index in range(count)]
    return [(x + r * math.cos(angle), y + r * math.sin(angle)) for r, angle in zip(reach, angles, strict=True)]
