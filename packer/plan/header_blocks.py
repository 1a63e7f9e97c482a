"""`HeaderBlocks`: what the parts of a plan have read of headers, in the folder of the plan.

Part i of n reads the headers of each n-th block of rows. A block is a file of stamps, so that the plan reads no header
of a file that is still in the state that its part has seen. A part that was killed goes on behind its last block.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from packer.errors import InputError, UsageError, first_of
from packer.plan.found_rows import FoundRows
from packer.publish.atomic import target_errors
from packer.publish.target import STAMP_SUFFIX, STAMPS
from packer.shards.stamps import ShardStamps, load_stamps_of, record, write_stamps
from packer.sources.portable import portable
from readers.contract import VERSION
from readers.contract.atomic import make_folder
from readers.contract.json_entry import fingerprint

BLOCK_ROWS = 1 << 14
"""The rows of a block: a part that is killed reads the headers of no more of them again for each core."""
MOST_NAMED = 16
_COUNT = re.compile(r"of-([1-9][0-9]{0,6})")
"""An empty file that notes into how many parts the plan is divided."""
_NAME = re.compile(rf"{_COUNT.pattern}|.+-[0-9a-f]{{32}}{re.escape(STAMP_SUFFIX)}|\.partial-.*")
"""A file in the folder of blocks."""


class RowBlock(NamedTuple):
    """Rows of a split, one after the other."""

    stem: str
    start: int
    stop: int

    @property
    def numbers(self) -> NDArray[np.intp]:
        return np.arange(self.start, self.stop)


@dataclass(frozen=True)
class HeaderBlocks:
    """The blocks of the rows that were found."""

    folder: Path
    found_rows: FoundRows
    judged: str
    """The fingerprint of what decides whether headers are good; none if that is not known."""

    def __post_init__(self) -> None:
        if not self.judged:
            raise UsageError("--part: nothing names the classes of the label; packer plan without --part says more")

    def of_part(self, number: int, count: int) -> list[RowBlock]:
        """Return the blocks of a part that are not done."""
        with target_errors(self.folder):
            make_folder(self.folder / STAMPS)
            (self.folder / STAMPS / f"of-{count}").touch()
        return [block for block in list(self._blocks())[number - 1 :: count] if not self._is_done(block)]

    def write(self, block: RowBlock, states: NDArray[np.int64], sizes: NDArray[np.uint32]) -> None:
        """Keep the sizes of rows, and their states before they were read."""
        records = np.zeros(len(sizes), record(states.shape[1], sizes.shape[1]))
        records["state"], records["size"] = states, sizes
        kind, text = self.found_rows.source.kind, self._text(block)
        write_stamps(self.folder, ShardStamps(block.stem, self._made_from, self.judged, kind, records, text))
        with target_errors(self.folder):
            (self.folder / STAMPS / (block.stem + STAMP_SUFFIX)).stat()  # only a build may do without stamps

    def check(self) -> None:
        """Refuse parts that are not all there, or that were made from something else."""
        counts = [int(match[1]) for name in _names(self.folder) if (match := _COUNT.fullmatch(name))]
        if not counts:
            return
        missing = [number for number, block in enumerate(self._blocks()) if not self._is_done(block)]
        if missing:
            parts = sorted({number % max(counts) + 1 for number in missing})
            named = ", ".join(first_of([f"{part}/{max(counts)}" for part in parts], MOST_NAMED))
            raise InputError(
                f"{self.folder}: these parts have not read all of their headers: {named}; run packer plan --part with "
                "the same options for each of them, then again without --part"
            )

    def _blocks(self) -> Iterator[RowBlock]:
        start = 0
        for split, count in self.found_rows.refs.splits.items():
            for first in range(start, start + count, BLOCK_ROWS):
                yield RowBlock(f"{split}-{first:032x}", first, min(first + BLOCK_ROWS, start + count))
            start += count

    def _is_done(self, block: RowBlock) -> bool:
        """Return whether a block is there. Raise InputError if it is of other rows, options or another version."""
        stamps = load_stamps_of(self.folder, block.stem)
        if stamps is None:
            return False
        if stamps.recipe != self._made_from or stamps.text != self._text(block):
            raise InputError(
                f"{self.folder / STAMPS}: its parts read other files, with other options or by another version of "
                "segpack, or files came and went since; delete this folder, and run all parts again"
            )
        return True

    def _text(self, block: RowBlock) -> str:
        return self.found_rows.refs.text(block.start, block.stop)

    @property
    def _made_from(self) -> str:
        return fingerprint([VERSION, portable(self.found_rows.source.to_text()), self.judged])[:32]


def has_only_blocks(folder: Path) -> bool:
    """Return whether parts of a plan wrote everything that is in this folder of stamps."""
    return all(_NAME.fullmatch(name) for name in _names(folder))


def remove_blocks(folder: Path) -> None:
    """Remove what the parts of a plan have left, which is written."""
    if has_only_blocks(folder):
        shutil.rmtree(folder / STAMPS, ignore_errors=True)


def _names(folder: Path) -> list[str]:
    try:
        return [path.name for path in (folder / STAMPS).iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
