"""Fields of ids, values and overlapping classes: files of numbers, and a definition of rows pixel by pixel."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from drills.band_files import DEFLATE, array_file, blocks_tiff
from handmade import encoded_as
from hypothesis import strategies as st
from numpy.typing import NDArray
from recipes import plain_recipe

from packer.pixels.choices import EDGES, FITS, NATIVE, TILE
from packer.pixels.field_options import ReadRule
from packer.pixels.resize import Geometry
from packer.recipe.field_rule import FieldRule
from packer.shards.kinds import FieldKind
from packer.shards.kinds.by_field import check_row, kinds_of
from readers.contract.fields import Field
from readers.contract.tiles import Origin, Size

SIDES = st.integers(1, 17)
SIZES = st.tuples(SIDES, SIDES)
GEOMETRIES = st.builds(
    lambda size, fit, overlap, edge: Geometry(None if fit == NATIVE else size, fit, overlap=overlap, edge=edge),
    st.tuples(st.integers(4, 17), st.integers(4, 17)),
    st.sampled_from(FITS),
    st.integers(0, 3),
    st.sampled_from(EDGES),
)


def files_of(numbers: NDArray[Any]) -> dict[str, bytes | NDArray[Any]]:
    """Return everything that holds (H,W) numbers as they are: files of several kinds, and an array."""
    files: dict[str, bytes | NDArray[Any]] = {
        "array": numbers,
        "npy": array_file(numbers),
        "npy, turned": array_file(np.asfortranarray(numbers.astype(numbers.dtype.newbyteorder(">")))),
    }
    if numbers.dtype != np.bool_ and (numbers.dtype.kind == "f" or numbers.itemsize < 8):
        files["tiff"] = blocks_tiff(numbers[..., None], ">", compression=DEFLATE)
    if numbers.dtype in (np.uint8, np.uint16):
        files["png"] = encoded_as(".png", numbers)
    return files


def kind_of(field: Field, read: ReadRule, geometry: Geometry) -> FieldKind:
    """Return how a field with these rules is stored."""
    recipe = plain_recipe(geometry, 1 << 20)
    rules = (*recipe.rules, FieldRule(field, read))
    (kind,) = kinds_of(type(recipe)(recipe.storage, geometry, rules, recipe.shard_bytes, recipe.tools), [field])
    return kind


def rows_of(
    field: Field, read: ReadRule, geometry: Geometry, data: Any
) -> Iterator[tuple[Origin | None, NDArray[Any]]]:
    """Yield each row that a field becomes, and its origin. The statistics are those that verifying it would find."""
    kind = kind_of(field, read, geometry)
    decoded = kind.decode(data)
    for origin in geometry.origins(decoded.size):
        height, width = geometry.size or decoded.size
        row = np.full(field.row_shape(height, width), 77, field.dtype)
        assert kind.store(decoded, origin, row).statistics == check_row(field, row)
        yield origin, row


def side_pixels(source: int, ratio: Fraction | None, target: int, start: int | None) -> list[int | None]:
    """Return the source pixel of each stored pixel of a side, or None where it is padded."""
    scaled = source if ratio is None else max(1, int(source * ratio + Fraction(1, 2)))
    pixels = [(2 * i + 1) * source // (2 * scaled) for i in range(scaled)]
    if start is None:
        start = (scaled - target) // 2 if scaled >= target else -((target - scaled) // 2)
    return [pixels[i] if 0 <= i < scaled else None for i in range(start, start + target)]


def sampled(numbers: NDArray[Any], geometry: Geometry, origin: Origin | None, fill: Any) -> NDArray[Any]:
    """Return (…,H,W) numbers at the stored size, pixel by pixel, as the format describes it."""
    source: Size = (numbers.shape[-2], numbers.shape[-1])
    target = geometry.size or source
    ratios: list[Fraction | None] = [Fraction(t, s) for s, t in zip(source, target, strict=True)]
    if geometry.fit in (TILE, NATIVE, "crop-or-pad"):
        ratios = [None, None]
    elif geometry.fit != "stretch":
        known = [ratio for ratio in ratios if ratio is not None]
        ratios = [min(known) if geometry.fit == "letterbox" else max(known)] * 2
    starts = origin or (None, None)
    rows, columns = (side_pixels(s, r, t, o) for s, r, t, o in zip(source, ratios, target, starts, strict=True))
    out = np.full((*numbers.shape[:-2], *target), fill, numbers.dtype)
    for y, row in enumerate(rows):
        for x, column in enumerate(columns):
            if row is not None and column is not None:
                out[..., y, x] = numbers[..., row, column]
    return out
