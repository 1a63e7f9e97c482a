"""Pack pairs whose labels are at made places, and look whether a label is packed at a wrong point of the world.

    tools/run drills.places [--count 500] [--first 0]

Half of the pairs are volumes of NIfTI, half are maps of GeoTIFF, written by nibabel and rasterio. The class of a label
is a function of the point in the world. The image has its place; the place of the label is the same, or its axes are
turned, or it is moved, scaled, sheared, rotated, in another coordinate system, or damaged. After a build of each pair,
also with --orient, --axis or tiles, every stored label is compared with the function at its place.
Exits 1 if a class is at a wrong point, or a label at the place of its image was refused.
"""

from __future__ import annotations

import random
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from program import parser
from tables import line

from packer import build_pack
from packer.errors import PackError
from readers import open_dataset

nibabel: Any = import_module("nibabel")
rasterio: Any = import_module("rasterio")
SIDES = (9, 8, 7)
MAP = (40, 56)
CLASSES = 5
SYSTEM = "EPSG:32633"
TURNED, MIDDLE = "in other axes", "named by the middle of pixels"
SOUTH_UP, OTHER_SYSTEM = "south-up", "in another system"


Change = Callable[[random.Random, Any], Any]
"""From the affine of an image to that of its label."""


class Pair(NamedTuple):
    """A change of the place of a label, whether it is then at another place, and the options of the build."""

    change: str
    is_foreign: bool
    options: dict[str, Any]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--count", type=int, default=500)
    options.add_argument("--first", type=int, default=0, help="the number of the first pair; it decides all of them")
    options.add_argument("--sabotage", action="store_true", help="ignore places; the drill must find it")
    chosen = options.parse_args()
    sabotage = {"place": "ignore"} if chosen.sabotage else {}
    warnings.simplefilter("ignore")
    done: dict[str, Counter[str]] = {}
    wrong = 0
    for number in range(chosen.first, chosen.first + chosen.count):
        with tempfile.TemporaryDirectory() as folder:
            change, outcome = judge(number, Path(folder), sabotage)
        done.setdefault(change, Counter())[outcome] += 1
        if outcome not in ("packed right", "refused"):
            wrong += 1
            print(f"pair {number}: {change}: {outcome}", file=sys.stderr)
    widths = (-34, 7, 14, 9, 7)
    print(line(("the label is", "pairs", "packed right", "refused", "WRONG"), widths))
    for change, counts in sorted(done.items()):
        pairs, right, refused = counts.total(), counts["packed right"], counts["refused"]
        print(line((change, pairs, right, refused, pairs - right - refused), widths))
    sys.exit(1 if wrong else 0)


def judge(number: int, folder: Path, further: dict[str, Any]) -> tuple[str, str]:
    """Build a pair with further options; return what was done to its label, and what became of it."""
    rng = random.Random(number)
    pair = _volumes(rng, folder / "raw") if number % 2 else _maps(rng, folder / "raw")
    try:
        facts: dict[str, Any] = {"classes": str(CLASSES), "labels": "index", "bands": "all"}
        build_pack(folder / "raw", folder / "out", **facts, **pair.options, **further)
    except PackError as error:
        is_named = "by their headers" in str(error) or " is in EPSG" in str(error)
        return pair.change, "refused" if pair.is_foreign and is_named else f"refused as {str(error)[:300]!r}"
    if pair.is_foreign:
        return pair.change, "packed, although it is at another place"
    rows = open_dataset(folder / "out", split="all")
    wrong = sum(_misplaced(rows, index) for index in range(len(rows)))
    return pair.change, f"packed with {wrong} pixels at a wrong point" if wrong else "packed right"


def class_at(points: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return the class at points of the world, which are along the last axis. It changes every three units."""
    return np.asarray(np.floor(points / 3).sum(-1) % CLASSES, np.uint8)


def _misplaced(rows: Any, index: int) -> int:
    """Return how many pixels of a row have another class than the one at their point."""
    place, label = rows.place(index), rows[index].label.numpy()
    middle = 0.5 if place.kind == "geo" else 0.0
    corners = np.stack(np.meshgrid(*map(np.arange, label.shape), indexing="ij"), -1) + middle
    numbers = np.concatenate([corners[..., ::-1], np.ones((*label.shape, 1))], -1)
    points = numbers @ place.matrix.T
    return int(((label != class_at(points)) & (label != 255)).sum())


def _points(matrix: NDArray[np.float64], sides: tuple[int, ...], middle: float) -> NDArray[np.float64]:
    """Return the points of all pixels of an array whose axes are the columns of a matrix."""
    numbers = np.stack(np.meshgrid(*map(np.arange, sides), indexing="ij"), -1) + middle
    return np.asarray(np.concatenate([numbers, np.ones((*sides, 1))], -1) @ matrix.T)


def _volumes(rng: random.Random, raw: Path) -> Pair:
    """Write a volume and its label."""
    affine = np.eye(4)
    affine[:3, 3] = [3 * rng.randrange(-9, 9) + 0.5 for _ in range(3)]
    if rng.random() < 0.5:
        affine[:3, :3] = _signed_permutation(rng)
    change = rng.choice(list(VOLUMES))
    moved, is_foreign = VOLUMES[change]
    axes = np.stack([np.arange(3), np.ones(3)], 1)
    if change == TURNED:
        axes = np.array([[axis, rng.choice((1, -1))] for axis in rng.sample(range(3), 3)], float)
    label = nibabel.orientations.apply_orientation(class_at(_points(affine[:3], SIDES, 0)), axes)
    own = moved(rng, affine.copy()) @ nibabel.orientations.inv_ornt_aff(axes, SIDES)
    image = np.random.default_rng(rng.randrange(99)).integers(0, 99, SIDES).astype(np.int16)
    for name, array, matrix in (("images/a", image, affine), ("labels/a", np.ascontiguousarray(label), own)):
        path = raw / f"{name}.nii{rng.choice(('', '.gz'))}"
        path.parent.mkdir(parents=True, exist_ok=True)
        nibabel.save(nibabel.Nifti1Image(array, matrix), path)
    slices: dict[str, Any] = {"size": "native", "axis": rng.randrange(3)}
    options: dict[str, Any] = rng.choice(
        [{"volumes": True}, {"volumes": True, "orient": "LPS"}, {"size": "native"}, slices]
    )
    return Pair(f"volume, {change}", is_foreign, options)


def _signed_permutation(rng: random.Random) -> NDArray[np.float64]:
    """Return the directions of three axes along the coordinates of the world."""
    directions = np.eye(3)[rng.sample(range(3), 3)]
    return np.asarray(directions * [rng.choice((1, -1)) for _ in range(3)])


def _maps(rng: random.Random, raw: Path) -> Pair:
    """Write a map and its label."""
    transform = rasterio.Affine(1, 0, 3 * rng.randrange(1000), 0, -1, 3 * rng.randrange(1000))
    change = rng.choice(list(MAPS))
    moved, is_foreign = MAPS[change]
    label, own = class_at(_points(np.array(transform[:6]).reshape(2, 3), MAP[::-1], 0.5)).T, moved(rng, transform)
    if change == SOUTH_UP:
        label = label[::-1]
    crs = rng.choice(("EPSG:32634", "EPSG:3857")) if change == OTHER_SYSTEM else SYSTEM
    image = np.random.default_rng(rng.randrange(99)).integers(1, 99, MAP).astype(np.uint16)
    _write_map(raw / "images/a.tif", image, transform, SYSTEM)
    _write_map(raw / "labels/a.tif", label, own, crs, AREA_OR_POINT="Point" if change == MIDDLE else "Area")
    tiles: dict[str, Any] = {"fit": "tile", "size": (16, 24), "overlap": rng.choice((0, 5))}
    options: dict[str, Any] = rng.choice([{"size": "native"}, tiles, {"size": (50, 60), "fit": "crop-or-pad"}])
    return Pair(f"map, {change}", is_foreign, options)


def _write_map(path: Path, numbers: NDArray[Any], transform: Any, crs: str, **tags: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    shape = {"count": 1, "height": MAP[0], "width": MAP[1], "dtype": numbers.dtype}
    with rasterio.open(path, "w", driver="GTiff", crs=crs, transform=transform, **shape) as file:
        file.write(numbers, 1)
        file.update_tags(**tags)


def _added(column: int, *amounts: float) -> Change:
    """Return a change that adds one of these amounts to a coordinate of an affine's column."""

    def change(rng: random.Random, affine: NDArray[np.float64]) -> NDArray[np.float64]:
        affine[rng.randrange(3), column] += rng.choice(amounts)
        return affine

    return change


def _times(*factors: float) -> Change:
    """Return a change that multiplies an axis of an affine by one of these factors."""

    def change(rng: random.Random, affine: NDArray[np.float64]) -> NDArray[np.float64]:
        affine[:3, rng.randrange(3)] *= rng.choice(factors)
        return affine

    return change


def _then(matrix: NDArray[np.float64]) -> Change:
    """Return a change of the axes of the array before they go to the world."""
    whole = np.eye(4)
    whole[:3, :3] = matrix
    return lambda _, affine: affine @ whole


VOLUMES: dict[str, tuple[Change, bool]] = {
    "at the place of its image": (lambda _, affine: affine, False),
    TURNED: (lambda _, affine: affine, False),
    "noise of a twentieth": (_added(3, 0.05, -0.04), False),
    "moved by voxels": (_added(3, -2, -1, 1, 5), True),
    "moved by 0.3 voxels": (_added(3, -0.3, 0.3), True),
    "scaled": (_times(0.5, 1.1, 2), True),
    "flipped about its first voxel": (_times(-1), True),
    "sheared": (_then(np.array([[1, 0.2, 0], [0, 1, 0], [0, 0, 1]])), True),
    "rotated": (_then(np.array([[0.8, -0.6, 0], [0.6, 0.8, 0], [0, 0, 1]])), True),
}
"""For each change of a label what becomes of its affine, and whether it is then at another place."""
MAPS: dict[str, tuple[Change, bool]] = {
    "at the place of its image": (lambda _, own: own, False),
    MIDDLE: (lambda _, own: own, False),
    "noise of a twentieth": (lambda rng, own: rasterio.Affine.translation(rng.uniform(-0.05, 0.05), 0) @ own, False),
    "moved by pixels": (lambda rng, own: rasterio.Affine.translation(rng.choice((-3, 1, 2)), 0) @ own, True),
    "moved by half a pixel": (lambda _, own: rasterio.Affine.translation(0.5, 0) @ own, True),
    "scaled": (lambda rng, own: own @ rasterio.Affine.scale(rng.choice((0.5, 1.01, 2))), True),
    "sheared": (lambda _, own: own @ rasterio.Affine(1, 0.1, 0, 0, 1, 0), True),
    SOUTH_UP: (lambda _, own: own @ rasterio.Affine(1, 0, 0, 0, -1, MAP[0]), True),
    OTHER_SYSTEM: (lambda _, own: own, True),
}
"""The same for maps. A label that is stored south-up is refused, although it could be turned."""


if __name__ == "__main__":
    main()
