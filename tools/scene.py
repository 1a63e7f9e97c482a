"""Draws a street and its label in one pass: every shape is a polygon, filled into both through one mask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

WIDTH, HEIGHT = 384, 256
SCALE = 3
"""Drawn so much larger. Odd, so that the middle of a label pixel is a drawn pixel."""

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
"""Where the two lanes meet; the camera is in the middle of the right one."""
FAR = 230.0
"""Metres to where the street is lost in haze."""

Pixels = NDArray[np.uint8]
Real = NDArray[np.floating[Any]]
Pair = tuple[float, float]
Triple = tuple[float, float, float]
Shape = Sequence[tuple[float, float]] | Real


class Mood(NamedTuple):
    """The light: the sky from top to horizon, daylight, clouds, how dark it is, and metres of clear view."""

    top: Triple
    low: Triple
    light: Triple
    cloud: Triple
    cloudy: float
    dark: float
    clear: float


class Road(NamedTuple):
    """Metres right of the camera to the edges of pavements and road; metres ahead to the zebra crossing, 0 for none."""

    outer_left: float
    left: float
    right: float
    outer_right: float
    zebra: float


MOODS = (
    Mood((74, 128, 196), (204, 224, 238), (1.14, 1.11, 1.04), (250, 250, 250), 0.5, 0.0, 300),
    Mood((142, 154, 168), (214, 218, 222), (0.92, 0.94, 0.96), (226, 229, 233), 0.9, 0.06, 170),
    Mood((92, 132, 186), (252, 218, 164), (1.16, 1.0, 0.8), (255, 236, 208), 0.5, 0.08, 150),
    Mood((48, 54, 104), (244, 158, 116), (0.72, 0.6, 0.62), (226, 128, 120), 0.6, 0.45, 190),
    Mood((20, 30, 66), (104, 106, 148), (0.46, 0.5, 0.64), (74, 76, 112), 0.6, 0.6, 210),
)
WALLS = ((196, 168, 132), (178, 92, 72), (212, 204, 190), (152, 158, 164), (216, 186, 122), (148, 170, 158))
PAINTS = ((176, 30, 34), (222, 224, 226), (34, 38, 44), (40, 74, 128), (148, 152, 158), (196, 150, 44), (52, 92, 78))
CLOTHES = ((176, 44, 48), (38, 52, 84), (222, 214, 196), (58, 60, 66), (206, 160, 60), (70, 112, 96), (86, 124, 172))
ROOFS = ((150, 78, 60), (88, 84, 88), (120, 92, 76))
GREENS = ((74, 104, 46), (92, 118, 52), (62, 92, 52), (128, 116, 50))
TROUSERS = ((40, 44, 58), (74, 66, 60), (52, 62, 92))
SKINS = ((222, 178, 148), (150, 104, 78))
HAIRS = ((60, 44, 34), (30, 28, 28), (150, 118, 78))


def noise(rng: np.random.Generator, height: int, width: int, rows: int, columns: int) -> Real:
    """Cloud-like noise about 0, each octave twice as fine and half as strong."""
    total = np.zeros((height, width), np.float32)
    for octave in range(5):
        grid = rng.standard_normal((rows << octave, columns << octave)).astype(np.float32)
        total += cv2.resize(grid, (width, height), interpolation=cv2.INTER_CUBIC) * np.float32(0.5**octave)
    return total / np.float32(total.std())


def ellipse(x: float, y: float, rx: float, ry: float, corners: int = 20) -> Real:
    """An ellipse as a polygon."""
    turn = np.linspace(0, 2 * np.pi, corners, endpoint=False, dtype=np.float32)
    return np.stack([x + rx * np.cos(turn), y + ry * np.sin(turn)], axis=1)


class Street:
    """The picture in the making, its label, and the pinhole camera that looks down the street."""

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
        """Metres (right, up, ahead) to drawn pixels."""
        x, y, z = np.asarray(points).T
        near = self.focal / np.maximum(z, 1)
        return np.stack([self.centre + near * x, self.horizon + near * (self.eye - y)], axis=1)

    def fill(self, points: Real, colour: Real, label: int | None, alpha: float = 1.0, fade: float = 0.0) -> None:
        """Fill a polygon of drawn pixels, fading to its foot; without a label it is only paint or shade."""
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
        """Fill a flat shape in the world, in the light of the day and the haze of its distance."""
        solid = np.asarray(points)
        near = np.exp(-solid[:, 2].mean() / self.mood.clear)
        self.fill(self.project(solid), colour * self.light * near + self.low * 0.86 * (1 - near), label, **how)

    def board(self, at: Triple, shape: Shape, colour: ArrayLike, label: int) -> None:
        """Fill a shape that stands upright at a place and faces the camera."""
        self.face(np.pad(shape, ((0, 0), (0, 1))) + at, colour, label)

    def ground(self, xs: Pair, zs: Pair, colour: ArrayLike, label: int | None = None, **how: float) -> None:
        """Fill a rectangle on the ground."""
        self.face([(xs[0], 0, zs[0]), (xs[1], 0, zs[0]), (xs[1], 0, zs[1]), (xs[0], 0, zs[1])], colour, label, **how)

    def wall(self, x: float, ys: Pair, zs: Pair, colour: ArrayLike, fade: float = 0.0) -> None:
        """Fill an upright rectangle that runs along the street, as part of a building."""
        corners = [(x, ys[0], zs[0]), (x, ys[1], zs[0]), (x, ys[1], zs[1]), (x, ys[0], zs[1])]
        self.face(corners, colour, BUILDING, fade=fade)

    def shine(self, at: Triple, colour: Triple, radius: float) -> None:
        """A light that glows over what is around it when it is dark."""
        if self.mood.dark > 0.3:
            (u, v), size = self.project([at])[0], max(2, round(radius * self.focal / at[2]))
            cv2.circle(self.glow, (round(float(u)), round(float(v))), size, colour, -1)

    def pick(self, colours: Sequence[Triple]) -> Real:
        """One of the colours, slightly off."""
        return np.array(colours[int(self.rng.integers(len(colours)))]) + self.rng.normal(0, 6, 3)


def draw_sky(street: Street) -> None:
    """A gradient, clouds that flatten towards the horizon, and the light of a low sun."""
    rows, columns = np.mgrid[: street.height, : street.width].astype(np.float32)
    down = np.clip(rows / street.horizon, 0, 1)[..., None]
    street.image[:] = street.top + (street.low - street.top) * down**1.2
    flat = noise(street.rng, street.height, street.width, 6, 3)
    thick = np.clip((flat + street.mood.cloudy * 1.6 - 0.9) / 1.6, 0, 1)[..., None] * (0.9 - 0.6 * down)
    street.image += thick * (street.cloud * (0.96 + 0.04 * flat[..., None]) - street.image)
    across, above = (columns - street.centre - street.sun * 90) / street.width, (rows - street.horizon) / street.height
    glare = np.exp(-(across**2 + above**2) / 0.03)[..., None]
    street.image += 0.7 * glare * (street.low * 1.12 - street.image)


def draw_ground(street: Street, road: Road) -> None:
    """Grass, pavements with kerbs and joints, a worn road, and houses at its end."""
    rng, left, right = street.rng, road.left, road.right
    for near in np.geomspace(2, FAR, 14)[::-1]:  # in bands, so that haze grows with the distance
        band = (near, near * 1.45)
        street.ground((-600, 600), band, (104, 124, 72), VEGETATION)
        street.ground((road.outer_left, road.outer_right), band, (168, 162, 154), PAVEMENT)
        street.ground((left - 0.25, right + 0.25), band, (196, 192, 186), PAVEMENT)
        street.ground((left, right), band, (98, 98, 102), ROAD)
    for x in rng.uniform(-150, 150, 40):
        high = rng.uniform(8, 26)
        street.board((x, 0, FAR), [(0, 0), (0, high), (16, high), (16, 0)], street.pick(WALLS) * 0.7, BUILDING)
    for z in np.arange(3, 45, 1.1):
        street.ground((road.outer_left, left - 0.25), (z, z + 0.03), (120, 114, 108), alpha=0.5)
        street.ground((right + 0.25, road.outer_right), (z, z + 0.03), (120, 114, 108), alpha=0.5)
    for track in (-0.8, 0.8, LANE * 2 - 0.8, LANE * 2 + 0.8):
        street.ground((track - 0.3, track + 0.3), (2, 90), (70, 70, 74), alpha=0.22)
    for _ in range(5):
        x, z = rng.uniform(left + 0.5, right - 2), rng.uniform(5, 35)
        street.ground((x, x + rng.uniform(0.6, 1.6)), (z, z + rng.uniform(1, 6)), (64, 64, 68), alpha=0.4)


def draw_marks(street: Street, road: Road) -> None:
    """The dashes in the middle, the lines at the edges and the zebra crossing."""
    for z in np.arange(street.rng.uniform(2, 8), 150, 8):
        street.ground((LANE - 0.07, LANE + 0.07), (z, z + 3.5), (226, 226, 220), alpha=0.85)
    for edge in (road.left + 0.35, road.right - 0.35):
        street.ground((edge - 0.06, edge + 0.06), (2, 160), (216, 216, 210), alpha=0.6)
    if road.zebra:
        for x in np.arange(road.left + 0.5, road.right - 0.6, 1.0):
            street.ground((x, x + 0.5), (road.zebra, road.zebra + 3.2), (232, 232, 226), alpha=0.9)


def draw_window(street: Street, x: float, ys: Pair, zs: Pair) -> None:
    """A frame and glass that mirrors the sky, or lamplight behind it."""
    rng, frame, middle = street.rng, (214, 208, 198), (zs[0] + zs[1]) / 2
    street.wall(x, (ys[0] - 0.12, ys[1] + 0.1), (zs[0] - 0.1, zs[1] + 0.1), frame)
    if rng.random() < street.mood.dark:
        street.wall(x, ys, zs, (250, 204, 120) / street.light * rng.uniform(0.6, 1))
    else:
        street.wall(x, ys, zs, street.low * rng.uniform(0.25, 0.6) + (6, 14, 22), fade=0.35)
    if zs[0] < 60 and rng.random() < 0.6:
        street.wall(x, ys, (middle - 0.04, middle + 0.04), frame)


def draw_house(street: Street, x: float, zs: Pair) -> None:
    """A front along the street, the wall that faces us, and perhaps a gabled roof."""
    rng, side, (z0, z1) = street.rng, np.sign(x), zs
    floors, storey = int(rng.integers(2, 6)), rng.uniform(2.9, 3.4)
    high, colour = floors * storey + 1.0, street.pick(WALLS) * (0.98 if side != street.sun else 0.72)
    back, ridge, peak = x + side * 9, x + side * 4.5, high + 3.2
    if rng.random() < 0.6:
        street.face([(x, high, z0), (ridge, peak, z0), (back, high, z0)], colour * 0.8, BUILDING)
        slope = [(x, high, z0), (ridge, peak, z0), (ridge, peak, z1), (x, high, z1)]
        street.face(slope, street.pick(ROOFS), BUILDING)
    street.face([(x, 0, z0), (x, high, z0), (back, high, z0), (back, 0, z0)], colour * 0.8, BUILDING, fade=0.2)
    street.wall(x, (0, high), zs, colour, fade=0.22)
    street.wall(x, (high - 0.35, high + 0.1), zs, colour * 1.12)
    street.wall(x, (0, 0.7), zs, colour * 0.6)
    shop = rng.random() < 0.5
    draw_floors(street, x, zs, [floor * storey + 1.0 for floor in range(shop, floors)])
    if shop:
        middle = (z0 + z1) / 2
        draw_window(street, x, (0.5, 2.6), (z0 + 0.8, middle - 0.4))
        draw_window(street, x, (0.5, 2.6), (middle + 0.4, z1 - 0.8))
        awning = [(x, 3.2, z0 + 0.4), (x - side, 2.6, z0 + 0.4), (x - side, 2.6, z1 - 0.4), (x, 3.2, z1 - 0.4)]
        street.face(awning, street.pick(PAINTS), BUILDING)


def draw_floors(street: Street, x: float, zs: Pair, sills: list[float]) -> None:
    """Rows of equal windows above one another."""
    high, wide = street.rng.uniform(1.3, 1.8), street.rng.uniform(0.9, 1.4)
    count = max(2, round((zs[1] - zs[0]) / street.rng.uniform(2.2, 3.2)))
    for sill in sills:
        for z in np.linspace(*zs, 2 * count + 1)[1::2] - wide / 2:
            draw_window(street, x, (sill, sill + high), (z, z + wide))


def draw_tree(street: Street, x: float, z: float, high: float) -> None:
    """A trunk and a crown of many clumps of leaves, light where the sky sees them."""
    rng, at, green = street.rng, (x, 0.0, z), street.pick(GREENS)
    middle, reach = high * 0.64, high * 0.34
    street.ground((x - high * 0.2, x + high * 0.2), (z - 0.6, z + 0.6), (30, 32, 30), alpha=0.3)
    street.board(at, [(-0.15, 0), (0.15, 0), (0.1, middle), (-0.1, middle)], (82, 66, 54), VEGETATION)
    boughs = np.array([(0, 0), *rng.uniform((-0.5, -0.5), (0.5, 0.65), (8, 2))])
    for late in np.linspace(0, 1, round(60 + 540 * min(1, 12 / z))):  # the last clumps are small, in front
        turn, far = rng.uniform(0, 2 * np.pi), rng.random() ** 0.6 * (0.34 + 0.2 * late)
        spot = np.add(rng.choice(boughs), (far * np.cos(turn), far * np.sin(turn)))
        clump = ellipse(0, 0, 1, 1, 9) * rng.uniform(0.6, 1.2, (9, 1)) * (0.25 - 0.19 * late)
        light = 0.5 + 0.25 * late + 0.34 * spot[1] + 0.2 * spot[0] * street.sun + rng.normal(0, 0.13)
        shape = np.add(clump, spot * (0.85, 1)) * reach
        street.board(at, np.add(shape, (0, middle)), green * max(light, 0.22), VEGETATION)


def draw_person(street: Street, x: float, z: float) -> None:
    """Somebody who walks: legs, arms, coat, head and hair."""
    rng, high = street.rng, street.rng.uniform(1.6, 1.85)
    coat, legs = street.pick(CLOTHES), street.pick(TROUSERS)
    step, at = rng.uniform(0.05, 0.13), (x, 0.0, z)
    street.ground((x - 0.45, x + 0.45), (z - 0.25, z + 0.25), (20, 20, 24), alpha=0.35)

    def part(shape: Shape, colour: Real, light: float = 1.0) -> None:
        street.board(at, np.asarray(shape) * high, colour * light, PERSON)

    for way, light in ((-1, 0.75), (1, 1.0)):
        foot = way * step
        part([(way * 0.005, 0.5), (way * 0.085, 0.5), (foot + 0.035, 0.02), (foot - 0.035, 0.02)], legs, light)
        part([(foot - 0.04, 0), (foot + 0.055, 0), (foot + 0.03, 0.04), (foot - 0.035, 0.04)], legs, 0.4)
        hand = way * (0.14 + step * 0.3)
        part([(way * 0.08, 0.82), (way * 0.13, 0.79), (hand + 0.02, 0.46), (hand - 0.025, 0.46)], coat, 0.82)
    part([(-0.12, 0.8), (-0.06, 0.845), (0.06, 0.845), (0.12, 0.8), (0.095, 0.44), (-0.095, 0.44)], coat)
    part([(0.03, 0.84), (0.12, 0.8), (0.095, 0.44), (0.05, 0.44)], coat, 0.8)
    part(ellipse(0, 0.92, 0.055, 0.075), street.pick(SKINS))
    part(ellipse(0, 0.965, 0.062, 0.042), street.pick(HAIRS))


def draw_car(street: Street, x: float, z: float, oncoming: bool) -> None:
    """A body extruded from its profile, with glass, wheels, lamps and a shadow."""
    paint, tall, side = street.pick(PAINTS), street.rng.uniform(0.98, 1.18), -np.sign(x)
    outline = ((0, 0.28), (-0.04, 0.6), (0.08, 0.94), (0.6, 1.4), (2.1, 1.45), (2.95, 0.98), (4.1, 0.78), (4.2, 0.28))
    body = [(4.2 - a, b * tall, 0.66 if b > 1.2 else 0.88) for a, b in outline]
    body = body[::-1] if oncoming else [(4.2 - a, b, w) for a, b, w in body]
    pane = np.array([(0.42, 1.0), (0.75, 1.34), (2.03, 1.37), (2.68, 1.0)]) * (1, tall)

    def flank(points: Shape, out: float, colour: ArrayLike) -> None:
        street.face([(x + side * out, b, z + (4.2 - a if oncoming else a)) for a, b in points], colour, CAR)

    street.ground((x - 1.05, x + 1.05), (z - 0.25, z + 4.5), (14, 14, 18), alpha=0.55)
    for edge in (-0.86, 0.5):
        street.board((x, 0, z + 0.3), [(edge, 0), (edge + 0.36, 0), (edge + 0.36, 0.5), (edge, 0.5)], (18, 18, 20), CAR)
    street.face([(x + side * w, b, z + a) for a, b, w in body], paint * 0.72, CAR)
    flank(pane, 0.76, (34, 42, 50))
    flank([(1.4, tall), (1.47, tall), (1.47, 1.36 * tall), (1.4, 1.36 * tall)], 0.74, paint * 0.6)
    for hub in (0.85, 3.35):
        flank(ellipse(hub, 0.33, 0.35, 0.33), 0.89, (20, 20, 22))
        flank(ellipse(hub, 0.33, 0.2, 0.19), 0.9, (132, 132, 136))
    for (a, b, w), (c, d, v) in reversed(list(pairwise(body))):
        light = 0.7 + 0.35 * (c - a) / (abs(d - b) + abs(c - a))
        panel = np.array([(x - w, b, z + a), (x + w, b, z + a), (x + v, d, z + c), (x - v, d, z + c)])
        street.face(panel, paint * light, CAR)
        if b > 0.7 and d - b > 0.3:
            glass = panel.mean(axis=0) + (panel - panel.mean(axis=0)) * 0.86
            street.face(glass, street.low * 0.3 + (12, 18, 24), CAR, fade=0.5)
    draw_lamps(street, (x, 0.0, z - 0.06), tall, (255, 250, 232) if oncoming else (206, 28, 30))


def draw_lamps(street: Street, at: Triple, tall: float, colour: Triple) -> None:
    """The lamps, bumper and plate of the end of a car that we see."""
    street.board(at, [(-0.86, 0.28), (0.86, 0.28), (0.86, 0.46), (-0.86, 0.46)], (40, 40, 44), CAR)
    street.board(at, [(-0.26, 0.5), (0.26, 0.5), (0.26, 0.62), (-0.26, 0.62)], (226, 226, 216), CAR)
    for way in (-1, 1):
        lamp = np.array([(0.54, 0.66), (0.84, 0.64), (0.82, 0.84), (0.58, 0.8)]) * (way, tall)
        street.board(at, lamp, colour, CAR)
        street.shine((at[0] + way * 0.7, 0.74 * tall, at[2]), colour, 0.12)


def draw_lamp(street: Street, x: float, z: float) -> None:
    """A street lamp whose arm reaches over the road."""
    at, mirrored, grey = (x, 0.0, z), (-np.sign(x), 1), (74, 78, 80)
    street.board(at, [(-0.09, 0), (0.09, 0), (0.05, 6.6), (-0.05, 6.6)], grey, POLE)
    arm = [(-0.05, 6.4), (0.1, 6.75), (1.4, 7.04), (2.1, 7.04), (2.05, 6.88), (1.4, 6.9), (0.1, 6.5)]
    street.board(at, np.array(arm) * mirrored, grey, POLE)
    street.shine((x - np.sign(x) * 1.7, 6.85, z), (255, 206, 130), 0.3)


def draw_sign(street: Street, x: float, z: float) -> None:
    """A pole with a ban, a warning, a direction or traffic lights."""
    at, red, white = (x, 0.0, z), (204, 32, 38), (236, 236, 232)
    street.board(at, [(-0.05, 0), (0.05, 0), (0.05, 2.6), (-0.05, 2.6)], (128, 132, 134), POLE)
    arrow = np.array([(-2, 55), (0, 90), (2, 55), (0.7, 55), (0.7, 35), (-0.7, 35), (-0.7, 55)]) / (10, 100) + (0, 2)
    lights = [(ellipse(0, y, 0.12, 0.12), c) for y, c in ((2.58, (30, 82, 56)), (2.9, (90, 74, 34)), (3.22, red))]
    kinds: list[list[tuple[Shape, Triple]]] = [
        [(ellipse(0, 2.65, 0.4, 0.4), red), (ellipse(0, 2.65, 0.27, 0.27), white)],
        [([(-0.42, 2.25), (0.42, 2.25), (0, 3.0)], red), ([(-0.24, 2.36), (0.24, 2.36), (0, 2.79)], white)],
        [([(-0.38, 2.25), (0.38, 2.25), (0.38, 3.0), (-0.38, 3.0)], (34, 84, 170)), (arrow, white)],
        [([(-0.2, 2.4), (0.2, 2.4), (0.2, 3.4), (-0.2, 3.4)], (30, 32, 32)), *lights],
    ]
    kind = kinds[street.rng.integers(len(kinds))]
    for shape, colour in kind:
        street.board(at, shape, colour, POLE)
    if kind is kinds[-1]:
        street.shine((x, 3.22, z), (255, 60, 50), 0.14)


def draw_bin(street: Street, x: float, z: float) -> None:
    """A bin on the pavement that nobody labelled."""
    street.board((x, 0.0, z), [(-0.3, 0), (0.3, 0), (0.36, 1.0), (-0.36, 1.0)], (66, 78, 72), VOID)
    street.board((x, 0.0, z), [(-0.4, 1.0), (0.4, 1.0), (0.32, 1.12), (-0.32, 1.12)], (46, 52, 50), VOID)


def draw_bonnet(street: Street) -> None:
    """The bonnet of the car that carries the camera, which nobody labelled."""
    for drop, grey in ((0, 40), (5, 58), (12, 46)):
        middle = (street.width / 2, street.height + 60 + drop)
        street.fill(ellipse(*middle, street.width, 90, 200), np.array((grey, grey + 4, grey + 10)), VOID)


def draw_side(street: Street, x: float, green: bool) -> None:
    """The houses or the park along one side of the street, the far ones first."""
    z, plots = street.rng.uniform(2, 6), []
    while z < 170:
        wide = street.rng.uniform(9, 16)
        plots.append((z, z + wide))
        z += wide + (4 if street.rng.random() < 0.25 else 0)
    for z0, z1 in reversed(plots):
        if green and z0 < 60:
            for z in np.linspace(z1, z0 + 4, 4):
                draw_tree(street, x + np.sign(x) * street.rng.uniform(1, 6), float(z), street.rng.uniform(4, 8))
        else:
            draw_house(street, x, (z0, z1))


def props(street: Street, road: Road) -> list[tuple[float, Callable[[], None]]]:
    """What stands and moves in the street, each with its distance."""
    rng, things = street.rng, list[tuple[float, Callable[[], None]]]()

    def put(draw: Callable[..., None], x: float, z: float, *more: float | bool) -> None:
        things.append((z, lambda: draw(street, x, z, *more)))

    for edge, way in ((road.left, -1), (road.right, 1)):
        for z in np.arange(rng.uniform(9, 14), 90, rng.uniform(9, 14)):
            if rng.random() < 0.6:
                put(draw_tree, edge + way * 0.9, float(z), rng.uniform(4.5, 7.5))
        for z in np.arange(rng.uniform(12, 22), 110, 24):
            put(draw_lamp, edge + way * 0.5, float(z))
        for z in np.arange(rng.uniform(7, 11), 70, 5.8):
            if rng.random() < 0.55 and not -5.5 < z - road.zebra < 3.5:
                put(draw_car, edge - way * 1.1, float(z), way < 0)
        for z in rng.uniform(6, 32, rng.integers(2, 6)):
            put(draw_person, edge + way * rng.uniform(1.2, 2.4), float(z))
        put(draw_sign, edge + way * 0.4, rng.uniform(8, 22))
        if rng.random() < 0.35:
            put(draw_bin, edge + way * 0.7, rng.uniform(7, 14))
    put(draw_car, 0.15, rng.uniform(road.zebra + 5, 40), False)
    put(draw_car, LANE * 2, rng.uniform(road.zebra + 5, 40), True)
    for x in rng.uniform(road.left, road.right, 3 if road.zebra else 0):
        put(draw_person, x, road.zebra + rng.uniform(0.5, 2.7))
    return sorted(things, key=lambda thing: -thing[0])


def develop(street: Street) -> tuple[Pixels, Pixels]:
    """The photo, with a wet road, glow, vignette and sensor noise; and the label, one drawn pixel for each of its."""
    label = street.label[SCALE // 2 :: SCALE, SCALE // 2 :: SCALE]
    image, glow = (cv2.resize(a, (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA) for a in (street.image, street.glow))
    mirror = cv2.GaussianBlur(image + 2 * glow, (0, 0), sigmaX=1.5, sigmaY=8)
    mirror = mirror[np.clip(2 * round(street.horizon / SCALE) - np.arange(HEIGHT), 0, HEIGHT - 1)]
    image += (label == ROAD)[..., None] * (0.08 + 0.4 * street.mood.dark) * (mirror - image)
    for sigma, strength in ((1, 0.9), (5, 0.8), (15, 0.6)):
        image = image + strength * cv2.GaussianBlur(glow, (0, 0), sigma)
    rows, columns = np.mgrid[-1 : 1 : HEIGHT * 1j, -1 : 1 : WIDTH * 1j]
    image = (image * 1.1 - 11.6) * (1 - 0.13 * (rows**2 + columns**2)[..., None])
    image += cv2.GaussianBlur(street.rng.normal(0, 4, (HEIGHT, WIDTH)), (0, 0), 0.8)[..., None]
    return np.clip(np.rint(image), 0, 255).astype(np.uint8), label


def draw_scene(seed: int) -> tuple[Pixels, Pixels]:
    """A scene as RGB (H,W,3) and its label as class numbers (H,W)."""
    rng = np.random.default_rng(seed)
    street = Street(rng, MOODS[seed % len(MOODS)])
    left, right = -rng.uniform(6.6, 7.6), rng.uniform(3.4, 4.2)
    road = Road(left - rng.uniform(2.8, 4), left, right, right + rng.uniform(2.8, 4), 0.0)
    if rng.random() < 0.45:
        road = road._replace(zebra=rng.uniform(9, 15))
    green = rng.integers(4)
    draw_sky(street)
    draw_ground(street, road)
    draw_marks(street, road)
    draw_side(street, road.outer_left, green == 0)
    draw_side(street, road.outer_right, green == 1)
    shade = (left - 9, left + 2.6) if street.sun < 0 else (right - 2.2, right + 9)
    street.ground(shade, (1, 160), (30, 34, 52), alpha=0.5 * (street.mood.light[0] > 1))
    for _, draw in props(street, road):
        draw()
    if rng.random() < 0.4:
        draw_bonnet(street)
    return develop(street)
