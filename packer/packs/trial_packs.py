"""Trial packs: some rows of a pack, stored with the encodings that it has and with others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from packer.build import build_from
from packer.config.config import Settings
from packer.config.effective import effective, from_python
from packer.plan.make_plan import make_plan
from packer.plan.request import request_of_rows
from packer.plan.size_sample import Encodings, scattered
from packer.progress import Progress, no_progress
from readers.pack import Pack

MOST_ROWS, MOST_BYTES = 1024, 512 << 20
"""The rows of a trial pack, and their raw bytes."""


@contextmanager
def trial_packs(
    root: Path, rows: Sequence[int], progress: Progress = no_progress
) -> Iterator[list[tuple[Encodings, Path]]]:
    """Build a pack of some of these rows with the encodings that they have, then one with each of some others.

    They are deleted at the end.
    """
    chosen = [rows[index] for index in scattered(len(rows), _most(Pack.open(root), rows))]
    with TemporaryDirectory(prefix="segpack-bench-") as folder:
        plan = make_plan(request_of_rows(_settings(root, Path(folder) / "plan", {}), chosen))
        packs = [(way, Path(folder) / str(number)) for number, way in enumerate(plan.ways_to_store)]
        with progress("packing trials", len(packs), "packs") as advance:
            for way, out in packs:
                settings = _settings(root, out, way)
                build_from(settings, request=request_of_rows(settings, chosen))
                advance(1)
        yield packs


def _settings(root: Path, out: Path, encodings: Encodings) -> Settings:
    """Return the settings of a trial; without encodings those of the pack stay."""
    options = {"from": root, "out": str(out), "format": Pack.open(root).manifest.storage}
    encode = [f"{name}={encoding}" for name, encoding in encodings.items()]
    return effective(from_python(options | ({"encode": encode} if encode else {})))


def _most(pack: Pack, rows: Sequence[int]) -> int:
    """Return how many rows fit into a trial, by the raw bytes of the first."""
    number, index = pack.table.locate(rows[0])
    shard = pack.shard(number)
    row = sum(field.row_bytes_at(*shard.size(index)) for field in pack.fields_of(number))
    return max(1, min(MOST_ROWS, MOST_BYTES // max(1, row)))
