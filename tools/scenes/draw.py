"""Draw a street scene and its label: sky, ground, houses, trees, people, cars, lamps and signs, from far to near."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import cv2
import numpy as np

from scenes.props import WALLS, draw_bin, draw_car, draw_house, draw_lamp, draw_person, draw_sign, draw_tree
from scenes.street import (
    BUILDING,
    FAR,
    HEIGHT,
    LANE,
    PAVEMENT,
    ROAD,
    SCALE,
    VEGETATION,
    VOID,
    WIDTH,
    Mood,
    Pixels,
    Street,
    ellipse,
    noise,
)


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


def draw_sky(street: Street) -> None:
    """Draw a gradient, clouds that flatten towards the horizon, and the light of a low sun."""
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
    """Draw grass, pavements with kerbs and joints, a worn road, and houses at its end."""
    rng, left, right = street.rng, road.left, road.right
    for near in np.geomspace(2, FAR, 14)[::-1]:  # in bands, because haze grows with the distance
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
    """Draw the dashes in the middle, the lines at the edges and the zebra crossing."""
    for z in np.arange(street.rng.uniform(2, 8), 150, 8):
        street.ground((LANE - 0.07, LANE + 0.07), (z, z + 3.5), (226, 226, 220), alpha=0.85)
    for edge in (road.left + 0.35, road.right - 0.35):
        street.ground((edge - 0.06, edge + 0.06), (2, 160), (216, 216, 210), alpha=0.6)
    if road.zebra:
        for x in np.arange(road.left + 0.5, road.right - 0.6, 1.0):
            street.ground((x, x + 0.5), (road.zebra, road.zebra + 3.2), (232, 232, 226), alpha=0.9)


def draw_bonnet(street: Street) -> None:
    """Draw the bonnet of the car that carries the camera, which has no label."""
    for drop, grey in ((0, 40), (5, 58), (12, 46)):
        middle = (street.width / 2, street.height + 60 + drop)
        street.fill(ellipse(*middle, street.width, 90, 200), np.array((grey, grey + 4, grey + 10)), VOID)


def draw_side(street: Street, x: float, green: bool) -> None:
    """Draw the houses or the park along one side of the street, the far ones first."""
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
    """Return the things in the street as functions that draw them, with their distances, the far ones first."""
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
    """Return the image with a wet road, glow, vignette and noise; and the label, one drawn pixel for each pixel."""
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
    """Return a scene as RGB (H,W,3) and its label as class numbers (H,W)."""
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
