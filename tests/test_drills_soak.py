"""The short form of the soak drill: a few nights in one process leave no open file, no memory and no file behind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from drills.soak import Report, Use, is_flat, soak

NIGHTS = 10


def test_nights_leave_nothing_behind(tmp_path: Path) -> None:
    first, last = soak(tmp_path, NIGHTS, (NIGHTS - 4, NIGHTS))
    assert is_flat(first, last), (first, last)
    assert last.files > 0


def test_growth_is_found() -> None:
    first = Report(1, Use(10, 1000), Use(10, 1000), 5, 100, ())
    assert is_flat(first, replace(first, packer=Use(9, 1099)))
    assert not is_flat(first, replace(first, packer=Use(11, 1000)))
    assert not is_flat(first, replace(first, reader=Use(10, 1101)))
    assert not is_flat(first, replace(first, unneeded=("shards/x",)))
