"""The size of encoded fields before a build: rows of a sample are packed, and their bytes counted."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory

from packer.errors import PackError
from packer.plan.request import Request
from packer.plan.sample import spread_indices
from packer.recipe.piece import Piece
from packer.recipe.shard_spec import ShardSpec
from packer.recipe.source import Source
from packer.workers.run import build_one, open_pool
from readers.contract.manifest import SHARDS

MOST_ROWS = 256
"""The rows of a sample: JPEG files of a data set then differ by a few percent on average."""
NPY = "npy"
"""The format of the sample, with a file for each field."""


def encoded_share(specs: Sequence[ShardSpec], source: Source, request: Request) -> float | None:
    """Return the stored bytes of a raw byte of encoded fields, by a sample; None if no row of it can be packed."""
    recipe = replace(specs[0].recipe, storage=NPY)
    pieces = _sample(specs)
    with ExitStack() as stack:
        out = Path(stack.enter_context(TemporaryDirectory(prefix="segpack-plan-")))
        (out / SHARDS).mkdir()
        if request.source.objects is not None:
            stack.enter_context(request.source.objects.named())
        pool = stack.enter_context(open_pool(request.workers, request.task_timeout))
        try:
            receipt = build_one(ShardSpec(specs[0].split, tuple(pieces.values()), recipe), source, out, pool)
        except PackError:
            return None
    packed = [pieces[key] for key in receipt.keys]
    raw = int(recipe.row_bytes(packed).sum() - recipe.row_bytes(packed, encoded=False).sum())
    files = {f".{field.name}.{NPY}" for field in recipe.fields if field.is_encoded}
    stored = sum(file.bytes for file in receipt.files if file.suffix in files)
    return stored / raw if raw else None


def _sample(specs: Sequence[ShardSpec]) -> dict[str, Piece]:
    """Return some pieces by their keys, spread over all shards with the most fields. They fit into a shard or two."""
    most = max(len(spec.fields) for spec in specs)
    full = [spec for spec in specs if len(spec.fields) == most]
    ends = list(accumulate(len(spec.pieces) for spec in full))
    largest = max(1, int(full[0].recipe.row_bytes(full[0].pieces[:1])[0]))
    rows = max(1, min(MOST_ROWS, 2 * full[0].recipe.shard_bytes // largest))
    pieces: dict[str, Piece] = {}
    for index in spread_indices(ends[-1], rows):
        spec = full[shard := bisect_right(ends, index)]
        piece = spec.pieces[index - ends[shard] + len(spec.pieces)]
        pieces[piece.key] = piece
    return pieces
