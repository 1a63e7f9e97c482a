"""Choose the stored size, and how pictures of other sizes are fitted to it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from packer.errors import InputError, UsageError, counted, first_of
from packer.pixels.choices import CROP_OR_PAD, FAST, MOST_PIXELS, NATIVE, TILE
from packer.pixels.resize import Geometry
from packer.plan.block_rule import BlockRule
from packer.plan.check_heads import CheckedHeads
from packer.plan.found_rows import FoundRows
from packer.plan.problems import problem_of
from packer.plan.request import Request, ShapeChoice
from packer.shards.count_sizes import count_sizes
from readers.contract.tiles import Size, picture_of, size_text


def check_shape(request: Request) -> None:
    """Refuse options that contradict each other, or that the rows or the decoder do not fit."""
    shape = request.shape
    size = shape.size if isinstance(shape.size, tuple) else None
    if request.rows.gives_volumes and {shape.size, shape.fit} - {None, NATIVE}:
        instead = ", or --volumes, if the rows are pictures" if request.rows.volumes else ""
        raise UsageError(
            f"--size and --fit: volumes keep their own sizes, and training crops them; leave them out{instead}"
        )
    _check_sides(shape, size)
    _check_resolution(request)
    _check_blocks(request.rows.blocks, shape, size)
    scales = size is not None and Geometry(size, shape.fit or "stretch", shape.interpolation).tools
    if request.fields.image.decode == FAST and not scales:
        raise UsageError("--decode fast: needs --size, a --fit that scales, and --interpolation area or cubic")


def _check_sides(shape: ShapeChoice, size: Size | None) -> None:
    """Refuse a size, a fit, an overlap and an edge that contradict each other."""
    if shape.fit == NATIVE and size is not None:
        raise UsageError("--fit native: keeps the size of every picture, so it cannot be combined with --size")
    if shape.size == NATIVE and shape.fit not in (None, NATIVE):
        raise UsageError(
            f"--size native: keeps the size of every picture, so it cannot be combined with --fit {shape.fit}"
        )
    if shape.fit not in (None, "stretch", NATIVE) and shape.size is None:
        raise UsageError(f"--fit {shape.fit}: needs --size, the size to fit the pictures to")
    if (shape.overlap or shape.edge != "pad") and shape.fit != TILE:
        raise UsageError("--overlap and --edge: need --fit tile")
    if size is not None and shape.overlap >= min(size):
        raise UsageError(f"--overlap {shape.overlap}: must be smaller than a tile, which is {size_text(size)}")
    if size is not None and size[0] * size[1] > MOST_PIXELS:
        raise UsageError(f"--size {size_text(size)}: is over the limit of {MOST_PIXELS} pixels")


def _check_resolution(request: Request) -> None:
    """Refuse to scale pictures twice, and volumes as maps."""
    shape = request.shape
    if shape.resolution is None:
        return
    if request.rows.gives_volumes:
        raise UsageError("--resolution: is for maps; --spacing scales volumes")
    if NATIVE not in (shape.size, shape.fit) and shape.fit not in (TILE, CROP_OR_PAD):
        raise UsageError(
            "--resolution: scales pictures to one size of pixels, so it needs --size native, --fit tile or --fit "
            f"{CROP_OR_PAD}"
        )


def _check_blocks(rule: BlockRule | None, shape: ShapeChoice, size: Size | None) -> None:
    """Refuse blocks of pictures that are not cut into tiles, and blocks in which no tile has room."""
    if rule is None:
        return
    if shape.fit != TILE or size is None:
        raise UsageError("--split-blocks: draws the splits of tiles, so it needs --fit tile and --size")
    least = max(size) + 2 * rule.blocks.margin
    if rule.blocks.side < least:
        raise UsageError(f"--split-blocks {rule.blocks.side}: a tile with its margins needs blocks of {least} pixels")


def choose_shape(found_rows: FoundRows, heads: CheckedHeads, shape: ShapeChoice) -> Geometry:
    """Return how pictures get their stored size. Raise InputError if they have several, and none was chosen."""
    if found_rows.source.gives_volumes or NATIVE in (shape.size, shape.fit):
        return Geometry(None, NATIVE, shape.interpolation, resolution=shape.resolution)
    size = shape.size if isinstance(shape.size, tuple) else _common_size(found_rows, heads)
    _check_tiles(found_rows, heads.sizes[heads.good], shape, size)
    fit = shape.fit or "stretch"
    return Geometry(size, fit, shape.interpolation, shape.overlap, shape.edge, shape.resolution)


def _check_tiles(found_rows: FoundRows, sizes: NDArray[np.uint32], shape: ShapeChoice, size: Size) -> None:
    """Refuse to resize or cut the tiles of a pack: their keys name their positions in the pictures."""
    changes = shape.fit == TILE or bool((sizes != size).any())
    if found_rows.packed and changes and any(picture_of(ref.key) != ref.key for ref in found_rows.refs):
        raise UsageError(
            "the rows of this pack are tiles, whose keys name their positions in the pictures; "
            "they keep their size: leave out --size and --fit, or build from the files"
        )


def _common_size(found_rows: FoundRows, heads: CheckedHeads) -> Size:
    """Return the size of all pictures. If they differ, the user must choose one."""
    counts = count_sizes(heads.sizes)
    if not counts:
        problems = [problem_of(found_rows.refs[index], reason) for index, reason in heads.bad.items()]
        raise InputError("every pair is bad; fix the files", problems)
    if len(counts) > 1:
        raise InputError(
            "the pictures have several sizes (height x width); choose one, such as --size 512x512, and --fit stretch, "
            "letterbox, crop-or-pad, shorter-side or tile; or keep the size of each picture: --size native",
            first_of(
                counts.most_common(), 20, "sizes", lambda item: f"{size_text(item[0])}: {counted(item[1], 'pair')}"
            ),
        )
    return next(iter(counts))
