"""A live pack of annotations, tiles, fields that some rows lack, or volumes is the pack of `packer build`, too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import make_raw, make_varied_raw, without_workers, write_png
from drills.volumes import nifti
from scenes.outlines import COCO, LABELME, Outlines, triangle, write_noisy, write_outlines
from test_live import tree, wait_until_published

from packer import build_pack
from readers import SegDataset, open_dataset
from readers.contract.manifest import Manifest

OWN = {"fields"}
"""Options of a build with the name of an option of `open_dataset`."""


def write_coco(raw: Path) -> None:
    write_annotations(raw, COCO)


def write_labelme(raw: Path) -> None:
    write_annotations(raw, LABELME)


def write_annotations(raw: Path, kind: str) -> None:
    """Write pictures with up to three triangles each."""
    outlines = Outlines()
    for number in range(20):
        key = f"{number:03}"
        write_noisy(raw, key, number)
        outlines.pictures[key] = [triangle((number, which)) for which in range(number % 4)]
    write_outlines(raw, kind, outlines)


def write_sizes(raw: Path) -> None:
    make_varied_raw(raw, {"train": [(40, 50), (24, 36), (33, 70)] * 3, "val": [(24, 36)] * 3})


def write_lacking(raw: Path) -> None:
    """Write pairs of which some lack the label, and some a depth: four parts of a split."""
    for split, rows in make_raw(raw, {"train": 12, "val": 5}).images:
        number = int(rows[-3:])
        if number % 3:
            depth = np.random.default_rng(number).integers(0, 1 << 16, (24, 36), np.uint16)
            write_png(raw / split / "depth" / f"{rows}.png", depth)
        if number % 4 == 1:
            (raw / split / "masks" / f"{rows}.png").unlink()


def write_volumes(raw: Path) -> None:
    dice = np.random.default_rng(0)
    for number in range(4):
        for folder, most in (("imagesTr", 256), ("labelsTr", 3)):
            file = raw / folder / f"c{number}.nii"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(nifti(dice.integers(0, most, (5 + number, 12, 16), np.uint8).T))


CASES: dict[str, tuple[Callable[[Path], None], dict[str, Any]]] = {
    "coco": (write_coco, {"annotations": "instances.json", "image": "images/{key}.png", "shard_size": "8KiB"}),
    "labelme": (write_labelme, {"shard_size": "8KiB"}),
    "tiles": (write_sizes, {"size": (16, 20), "fit": "tile", "shard_size": "8KiB"}),
    "native": (write_sizes, {"size": "native", "shard_size": "8KiB"}),
    "lacking": (
        write_lacking,
        {"missing": "keep", "fields": ["depth=values:{split}/depth/{key}.png"], "shard_size": "4KiB"},
    ),
    "volumes": (write_volumes, {"volumes": True, "classes": 3, "shard_size": "4KiB"}),
}

LONG = "labelme", "native"


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.long) if case in LONG else case for case in CASES]
)
def test_every_row_comes_once_and_the_pack_is_the_one_of_a_build(case: str, tmp_path: Path) -> None:
    write, options = CASES[case]
    raw, live, built = (tmp_path / name for name in ("raw", "live", "built"))
    write(raw)
    with without_workers():
        manifest = build_pack(raw, built, **options).manifest
    names = tuple(field.name for field in manifest.fields)
    same_name = {name: options[name] for name in OWN & options.keys()}
    others = {name: option for name, option in options.items() if name not in OWN}
    train = open_dataset(raw, "all", pack=live, fields=names, workers=2, options=same_name, **others)
    order = np.random.default_rng(0).permutation(len(train)).tolist()
    assert rows_of(train, order) == rows_of(open_dataset(built, "all", fields=names), order)
    assert wait_until_published(live).same_data(Manifest.load(built))
    assert tree(live) == tree(built)


def rows_of(rows: SegDataset, order: list[int]) -> list[list[bytes]]:
    return [[np.asarray(part).tobytes() for part in rows[row]] for row in order]
