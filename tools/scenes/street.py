"""A street that is being drawn: a pinhole camera, and polygons that fill image and label through one mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

WIDTH, HEIGHT = 384, 256
SCALE = 3
"""The factor by which the drawing is larger. It is odd, so the middle of a label pixel is a drawn pixel."""

CLASSES = {
    "sky": (70, 130, 180),
    "building": (70, 70, 70),
    "road": (128, 64, 128),
    "pavement": (244, 35, 232),
    "vegetation": (107, 142, 35),
    "car": (0, 0, 142),
    "person": (220, 20, 60),
    "pole_sign": (220, 220, 0),
    "void": (0, 0, 0),
}
SKY, BUILDING, ROAD, PAVEMENT, VEGETATION, CAR, PERSON, POLE, VOID = range(len(CLASSES))
LANE = -1.75
"""The line between the two lanes, in metres right of the camera, which is in the middle of the right lane."""
FAR = 230.0
"""The distance at which haze hides the street, in metres."""

Pixels = NDArray[np.uint8]
Real = NDArray[np.floating[Any]]
Pair = tuple[float, float]
Triple = tuple[float, float, float]
Shape = Sequence[tuple[float, float]] | Real


class Mood(NamedTuple):
    """The light: colours of the sky from top to horizon, of daylight and clouds; darkness; metres of clear view."""

    top: Triple
    low: Triple
    light: Triple
    cloud: Triple
    cloudy: float
    dark: float
    clear: float


def noise(rng: np.random.Generator, height: int, width: int, rows: int, columns: int) -> Real:
    """Return cloud-like noise around 0. Each octave is twice as fine and half as strong."""
    total = np.zeros((height, width), np.float32)
    for octave in range(5):
        grid = rng.standard_normal((rows << octave, columns << octave)).astype(np.float32)
        total += cv2.resize(grid, (width, height), interpolation=cv2.INTER_CUBIC) * np.float32(0.5**octave)
    return total / np.float32(total.std())


def ellipse(x: float, y: float, rx: float, ry: float, corners: int = 20) -> Real:
    """Return an ellipse as a polygon."""
    turn = np.linspace(0, 2 * np.pi, corners, endpoint=False, dtype=np.float32)
    return np.stack([x + rx * np.cos(turn), y + ry * np.sin(turn)], axis=1)


class Street:
    """The image and the label that are being drawn, and the pinhole camera that looks down the street."""

    def __init__(self, rng: np.random.Generator, mood: Mood) -> None:
        self.rng, self.mood = rng, mood
        self.top, self.low, self.light, self.cloud = np.array(mood[:4])
        self.height, self.width = HEIGHT * SCALE, WIDTH * SCALE
        self.image = np.zeros((self.height, self.width, 3), np.float32)
        self.glow = np.zeros_like(self.image)
        self.label = np.zeros((self.height, self.width), np.uint8)
        self.grain = 0.025 * noise(rng, self.height, self.width, 27, 40)
        self.focal = SCALE * rng.uniform(235, 275)
        self.centre = self.width * rng.uniform(0.42, 0.6)
        self.horizon = self.height * rng.uniform(0.46, 0.53)
        self.eye = rng.uniform(1.6, 2.1)
        self.sun = float(rng.choice([-1, 1]))

    def project(self, points: ArrayLike) -> Real:
        """Convert metres (right, up, ahead) to drawn pixels."""
        x, y, z = np.asarray(points).T
        near = self.focal / np.maximum(z, 1)
        return np.stack([self.centre + near * x, self.horizon + near * (self.eye - y)], axis=1)

    def fill(self, points: Real, colour: Real, label: int | None, alpha: float = 1.0, fade: float = 0.0) -> None:
        """Fill a polygon of drawn pixels, darker towards its foot. Without a label only the image changes."""
        left, top = np.maximum(np.floor(points.min(axis=0)).astype(int), 0)
        right, bottom = np.minimum(np.ceil(points.max(axis=0)).astype(int) + 1, (self.width, self.height))
        if right <= left or bottom <= top:
            return
        box = np.s_[top:bottom, left:right]
        mask = np.zeros((bottom - top, right - left), np.uint8)
        cv2.fillPoly(mask, [np.round((points - (left, top)) * 16).astype(np.int32)], (1,), shift=4)
        inside = mask.astype(bool)
        light = (1 + self.grain[box] - np.linspace(0, fade, bottom - top)[:, None])[inside, None]
        self.image[box][inside] += alpha * (colour * light - self.image[box][inside])
        if label is not None:
            self.label[box][inside] = label
            self.glow[box][inside] = 0

    def face(self, points: ArrayLike, colour: ArrayLike, label: int | None = None, **how: float) -> None:
        """Fill a flat shape in the world, with daylight and the haze of its distance."""
        solid = np.asarray(points)
        near = np.exp(-solid[:, 2].mean() / self.mood.clear)
        self.fill(self.project(solid), colour * self.light * near + self.low * 0.86 * (1 - near), label, **how)

    def board(self, at: Triple, shape: Shape, colour: ArrayLike, label: int) -> None:
        """Fill a shape that stands upright at a point and faces the camera."""
        self.face(np.pad(shape, ((0, 0), (0, 1))) + at, colour, label)

    def ground(self, xs: Pair, zs: Pair, colour: ArrayLike, label: int | None = None, **how: float) -> None:
        """Fill a rectangle on the ground."""
        self.face([(xs[0], 0, zs[0]), (xs[1], 0, zs[0]), (xs[1], 0, zs[1]), (xs[0], 0, zs[1])], colour, label, **how)

    def wall(self, x: float, ys: Pair, zs: Pair, colour: ArrayLike, fade: float = 0.0) -> None:
        """Fill an upright rectangle that runs along the street, as part of a building."""
        corners = [(x, ys[0], zs[0]), (x, ys[1], zs[0]), (x, ys[1], zs[1]), (x, ys[0], zs[1])]
        self.face(corners, colour, BUILDING, fade=fade)

    def shine(self, at: Triple, colour: Triple, radius: float) -> None:
        """Draw a light that glows over its surroundings when it is dark."""
        if self.mood.dark > 0.3:
            (u, v), size = self.project([at])[0], max(2, round(radius * self.focal / at[2]))
            cv2.circle(self.glow, (round(float(u)), round(float(v))), size, colour, -1)

    def pick(self, colours: Sequence[Triple]) -> Real:
        """Return one of the colours, slightly changed."""
        return np.array(colours[int(self.rng.integers(len(colours)))]) + self.rng.normal(0, 6, 3)
