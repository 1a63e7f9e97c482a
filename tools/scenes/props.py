"""Things on the street: houses, trees, people, cars, lamps, signs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from scenes.street import (
    BUILDING,
    CAR,
    PERSON,
    POLE,
    VEGETATION,
    VOID,
    Pair,
    Real,
    Shape,
    Street,
    Triple,
    ellipse,
)

WALLS = ((196, 168, 132), (178, 92, 72), (212, 204, 190), (152, 158, 164), (216, 186, 122), (148, 170, 158))
PAINTS = ((176, 30, 34), (222, 224, 226), (34, 38, 44), (40, 74, 128), (148, 152, 158), (196, 150, 44), (52, 92, 78))
CLOTHES = ((176, 44, 48), (38, 52, 84), (222, 214, 196), (58, 60, 66), (206, 160, 60), (70, 112, 96), (86, 124, 172))
ROOFS = ((150, 78, 60), (88, 84, 88), (120, 92, 76))
GREENS = ((74, 104, 46), (92, 118, 52), (62, 92, 52), (128, 116, 50))
TROUSERS = ((40, 44, 58), (74, 66, 60), (52, 62, 92))
SKINS = ((222, 178, 148), (150, 104, 78))
HAIRS = ((60, 44, 34), (30, 28, 28), (150, 118, 78))


def draw_window(street: Street, x: float, ys: Pair, zs: Pair) -> None:
    """Draw a frame, and glass that mirrors the sky or has a lamp behind it."""
    rng, frame, middle = street.rng, (214, 208, 198), (zs[0] + zs[1]) / 2
    street.wall(x, (ys[0] - 0.12, ys[1] + 0.1), (zs[0] - 0.1, zs[1] + 0.1), frame)
    if rng.random() < street.mood.dark:
        street.wall(x, ys, zs, (250, 204, 120) / street.light * rng.uniform(0.6, 1))
    else:
        street.wall(x, ys, zs, street.low * rng.uniform(0.25, 0.6) + (6, 14, 22), fade=0.35)
    if zs[0] < 60 and rng.random() < 0.6:
        street.wall(x, ys, (middle - 0.04, middle + 0.04), frame)


def draw_house(street: Street, x: float, zs: Pair) -> None:
    """Draw a front along the street, the wall that faces the camera, and perhaps a gabled roof."""
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
    """Draw rows of equal windows above one another."""
    high, wide = street.rng.uniform(1.3, 1.8), street.rng.uniform(0.9, 1.4)
    count = max(2, round((zs[1] - zs[0]) / street.rng.uniform(2.2, 3.2)))
    for sill in sills:
        for z in np.linspace(*zs, 2 * count + 1)[1::2] - wide / 2:
            draw_window(street, x, (sill, sill + high), (z, z + wide))


def draw_tree(street: Street, x: float, z: float, high: float) -> None:
    """Draw a trunk and a crown of many clumps of leaves, lighter towards the sky."""
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
    """Draw a walking person: legs, arms, coat, head and hair."""
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
    """Draw a car: a body extruded from its profile, with glass, wheels, lamps and a shadow."""
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
    """Draw lamps, bumper and plate on the end of a car that faces the camera."""
    street.board(at, [(-0.86, 0.28), (0.86, 0.28), (0.86, 0.46), (-0.86, 0.46)], (40, 40, 44), CAR)
    street.board(at, [(-0.26, 0.5), (0.26, 0.5), (0.26, 0.62), (-0.26, 0.62)], (226, 226, 216), CAR)
    for way in (-1, 1):
        lamp = np.array([(0.54, 0.66), (0.84, 0.64), (0.82, 0.84), (0.58, 0.8)]) * (way, tall)
        street.board(at, lamp, colour, CAR)
        street.shine((at[0] + way * 0.7, 0.74 * tall, at[2]), colour, 0.12)


def draw_lamp(street: Street, x: float, z: float) -> None:
    """Draw a street lamp whose arm reaches over the road."""
    at, mirrored, grey = (x, 0.0, z), (-np.sign(x), 1), (74, 78, 80)
    street.board(at, [(-0.09, 0), (0.09, 0), (0.05, 6.6), (-0.05, 6.6)], grey, POLE)
    arm = [(-0.05, 6.4), (0.1, 6.75), (1.4, 7.04), (2.1, 7.04), (2.05, 6.88), (1.4, 6.9), (0.1, 6.5)]
    street.board(at, np.array(arm) * mirrored, grey, POLE)
    street.shine((x - np.sign(x) * 1.7, 6.85, z), (255, 206, 130), 0.3)


def draw_sign(street: Street, x: float, z: float) -> None:
    """Draw a pole with a ban, a warning, a direction or traffic lights."""
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
    """Draw a bin on the pavement, which has no label."""
    street.board((x, 0.0, z), [(-0.3, 0), (0.3, 0), (0.36, 1.0), (-0.36, 1.0)], (66, 78, 72), VOID)
    street.board((x, 0.0, z), [(-0.4, 1.0), (0.4, 1.0), (0.32, 1.12), (-0.32, 1.12)], (46, 52, 50), VOID)
