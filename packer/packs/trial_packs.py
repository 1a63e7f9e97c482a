"""Trial packs: some rows of a pack, stored with the encodings that it has and with others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from packer.building import build_from
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
    chosen = _chosen(Pack.open(root), rows)
    with TemporaryDirectory(prefix="segpack-bench-") as folder:
        plan = make_plan(request_of_rows(_settings(root, Path(folder) / "plan", {}), chosen))
        packs = [(way, Path(folder) / str(number)) for number, way in enumerate(plan.ways_to_store)]
        with progress("packing trials", len(packs), "packs") as advance:
            for way, out in packs:
                build_from(request_of_rows(_settings(root, out, way), chosen))
                advance(1)
        yield packs


def _settings(root: Path, out: Path, encodings: Encodings) -> Settings:
    """Return the settings of a trial; without encodings, the pack's own encodings stay."""
    options = {"from": root, "out": str(out), "format": Pack.open(root).manifest.storage}
    encode = [f"{name}={encoding}" for name, encoding in encodings.items()]
    return effective(from_python(options | ({"encode": encode} if encode else {})))


def _chosen(pack: Pack, rows: Sequence[int]) -> list[int]:
    """Return rows that are spread over these, as many as fit into a trial by their raw bytes: one at least."""
    count = min(len(rows), MOST_ROWS)
    while True:
        chosen = [rows[index] for index in scattered(len(rows), count)]
        size = sum(_raw_bytes(pack, row) for row in chosen)
        if size <= MOST_BYTES or count == 1:
            return chosen
        count = max(1, min(count - 1, count * MOST_BYTES // size))


def _raw_bytes(pack: Pack, row: int) -> int:
    number, index = pack.table.locate(row)
    sides = pack.manifest.fields[0].size or pack.shard(number).size(index)
    return sum(field.row_bytes_at(*sides) for field in pack.fields_of(number))
