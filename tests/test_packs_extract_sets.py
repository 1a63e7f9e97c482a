"""`packer extract` of every sample set writes what Pillow decodes and plainly written geometry makes of it."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from conftest import REPO
from golden import GOLDEN, PACKS
from numpy.typing import NDArray
from PIL import Image, ImageOps
from plain_geometry import area, centred, nearest, tile
from public_sets import SETS, Set, build, class_of, sources_in

from packer import UsageError
from packer.packs.extract import extract_rows
from packer.packs.generations import receipt_paths
from readers.contract.files import blake3_of
from readers.contract.manifest import Manifest
from readers.contract.receipt import Receipt
from readers.contract.tiles import Size

pytestmark = pytest.mark.usefixtures("in_process")
ROWS = 3
"""So many rows of each split are compared."""
FITS = {
    "area": "--interpolation area",
    "nearest": "--interpolation nearest",
    "crop-or-pad": "--fit crop-or-pad",
    "tile": "--fit tile --overlap 1",
}
SAMPLES = REPO / "data_samples"


class Decoded(NamedTuple):
    """A pair as Pillow decodes it: red, green and blue, and the number of the class of each pixel."""

    image: NDArray[Any]
    label: NDArray[Any]


def decode(image: Path, label: Path, manifest: Manifest) -> Decoded:
    with Image.open(image) as picture:
        rgb = np.asarray(ImageOps.exif_transpose(picture).convert("RGB"))
    rules = manifest.recipe["fields"][1]["read"]
    with Image.open(label) as picture:
        sources = sources_in(picture, rules)
    coloured = sources.ndim == 3
    flat = sources @ (1 << 16, 1 << 8, 1) if coloured else sources
    values, where = np.unique(flat, return_inverse=True)
    known = [tuple(value.to_bytes(3, "big")) if coloured else value for value in values.tolist()]
    names = [class_of(manifest, value, rules) for value in known]
    numbers = {"": manifest.classes.ignore_index} | {name: n for n, name in enumerate(manifest.classes.names)}
    return Decoded(rgb, np.array([numbers[name] for name in names])[where].reshape(flat.shape))


def fitted(pair: Decoded, fit: str, size: Size, key: str, ignored: int) -> Decoded:
    """Return a pair at its stored size."""
    if fit in ("area", "nearest"):
        scaled = area if fit == "area" else nearest
        return Decoded(scaled(pair.image, size), nearest(pair.label, size))
    if fit == "crop-or-pad":
        return Decoded(centred(pair.image, size, 0), centred(pair.label, size, ignored))
    return Decoded(tile(pair.image, key, size, 0), tile(pair.label, key, size, ignored)) if fit == "tile" else pair


def compare(raw: Path, out: Path, folder: Path, fit: str = "native") -> Size:
    """Compare a few rows of each split that were extracted with their raw files; return the smallest height and width.

    Labels are compared as numbers of classes and as colours.
    """
    manifest = Manifest.load(out)
    files = {blake3_of(path): path for path in raw.rglob("*") if path.is_file()}
    receipts = [Receipt.load(path) for path in receipt_paths(out, manifest)]
    given = {(each.split, source.key): source for each in receipts for source in each.sources}
    keys = [(split.name, key) for split in manifest.splits for key in sorted(_keys(receipts, split.name))[:ROWS]]
    extract_rows(out, folder / "index", {key for _, key in keys})
    written = {(row["split"], row["key"]): row for row in _table(folder / "index")}
    assert set(keys) <= written.keys()
    coloured = _extract_colours(out, folder / "colours", keys)
    ignored = manifest.classes.ignore_index
    sizes = []
    for row in keys:
        image, label = (files[identity] for identity in given[row].identities)
        pair = decode(image, label, manifest)
        sizes.append(pair.label.shape)
        size = manifest.fields[0].size or pair.label.shape
        wanted = fitted(pair, fit, (size[0], size[1]), row[1], ignored)
        found = [np.asarray(Image.open(folder / "index" / written[row][name])) for name in ("image", "label")]
        assert np.array_equal(found[0], wanted.image), row
        assert np.array_equal(found[1], wanted.label), row
        if coloured:
            colours = np.asarray(Image.open(folder / "colours" / coloured[row]["label"]))
            assert np.array_equal(colours, _painted(manifest, wanted.label)), row
    return min(size[0] for size in sizes), min(size[1] for size in sizes)


def _keys(receipts: list[Receipt], split: str) -> list[str]:
    return [key for receipt in receipts if receipt.split == split for key in receipt.keys]


def _table(folder: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((folder / "pairs.csv").read_text(encoding="utf-8").splitlines()))


def _extract_colours(out: Path, folder: Path, keys: list[tuple[str, str]]) -> dict[tuple[str, str], dict[str, str]]:
    """Return the table of rows whose labels were extracted as colours; none if two classes have the same colour."""
    try:
        extract_rows(out, folder, {key for _, key in keys}, fields=("image", "label"), colours=True)
    except UsageError:
        palette = Manifest.load(out).classes.palette
        assert len({*palette, palette.ignored}) <= len(palette)
        return {}
    return {(row["split"], row["key"]): row for row in _table(folder)}


def _painted(manifest: Manifest, label: NDArray[Any]) -> NDArray[np.uint8]:
    """Return a label in the colours of its classes: those of the table, where it has some."""
    classes = manifest.classes
    colours = np.zeros((classes.ignore_index + 1, 3), np.uint8)
    for number, known in enumerate(classes.classes):
        colours[number] = known.colour or classes.palette[number]
    colours[classes.ignore_index] = classes.palette.ignored
    return np.asarray(colours[label])


def built(raw: Path, options: str, out: Path) -> Path:
    summary = build(raw, options, out)
    assert not isinstance(summary, str), summary
    assert not summary["rejects"]
    return out


@pytest.mark.parametrize("fit", ["native", *FITS])
def test_the_samples(tmp_path: Path, fit: str) -> None:
    options = "" if fit == "native" else f"--size {'101x301' if fit == 'crop-or-pad' else '90x130'} {FITS[fit]}"
    out = built(SAMPLES / "raw", options, tmp_path / "out")
    assert compare(SAMPLES / "raw", out, tmp_path / "files", fit) == (256, 384)


@pytest.mark.parametrize("name", PACKS)
def test_packs_of_earlier_releases(tmp_path: Path, name: str) -> None:
    assert compare(GOLDEN / "raw", GOLDEN / name, tmp_path) == (5, 7)


PACKED = [entry for entry in SETS if entry.pairs]
FIT_OF = {entry.name: [*FITS][number % len(FITS)] for number, entry in enumerate(PACKED)}
"""Each set is fitted in one way, besides its native sizes."""


@pytest.mark.shared
@pytest.mark.long(every=10)
@pytest.mark.parametrize("entry", PACKED, ids=lambda entry: entry.name)
def test_a_public_set(shared_data: Path, tmp_path: Path, entry: Set) -> None:
    raw, fit = shared_data / entry.folder, FIT_OF[entry.name]
    height, width = compare(raw, built(raw, entry.options, tmp_path / "native"), tmp_path / "files")
    least = 2 if fit == "tile" else 1
    size = max(least, height // 2), width + 3 if fit == "crop-or-pad" else max(least, width // 2)
    options = f"--size {size[0]}x{size[1]} {FITS[fit]} {entry.options}"
    compare(raw, built(raw, options, tmp_path / "fitted"), tmp_path / "fitted files", fit)
