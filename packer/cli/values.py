"""Values on the command line that are not options of a build, and how sizes are printed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from packer.config.values import parse_size

EVERY = 1 << 40
"""More pairs than anybody has."""


class CropType(click.ParamType[Any]):
    """`512x512` is a height and a width."""

    name = "HxW"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            size = parse_size(value)
        except ValueError:
            size = None
        if not isinstance(size, tuple):
            self.fail(f"{value!r}: expected height x width, such as 512x512", param, ctx)
        return size


class NumbersType(click.ParamType[Any]):
    """`8,16` are numbers of at least `least`."""

    name = "N,N"

    def __init__(self, least: int) -> None:
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        words = [word.strip() for word in str(value).split(",")]
        if not all(re.fullmatch(r"\d{1,6}", word) and int(word) >= self._least for word in words):
            self.fail(f"{value!r}: expected numbers of at least {self._least}, such as 8,16", param, ctx)
        return tuple(sorted({int(word) for word in words}))


class OutputFile(click.Path):
    """A file to write. Its folder must exist, so that a mistake is known before the work and not after it."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(str(super().convert(value, param, ctx)))
        if not path.absolute().parent.is_dir():
            self.fail(f"{path}: there is no folder {path.parent}", param, ctx)
        return path


class TimeType(click.ParamType[Any]):
    """`24h` is a time; its value is in seconds."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = re.fullmatch(r"(\d{1,9})\s*([smhd])", str(value).strip())
        if found is None:
            self.fail(f"{value!r}: expected a time such as 90s, 30m, 24h or 7d", param, ctx)
        return float(int(found[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[found[2]])


class CountType(click.ParamType[Any]):
    """`64` is a number of pairs; `all` is every pair."""

    name = "N|all"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, int):
            return value
        text = str(value).strip()
        if text == "all":
            return EVERY
        return int(text) if re.fullmatch("[1-9][0-9]{0,8}", text) else self.fail(f"{text!r}: expected a number, or all")


def shape_text(shape: Sequence[int | None]) -> str:
    """The shape of a row: (3, H, W) if each row has its own height and width."""
    parts = [*shape[:-2], "H", "W"] if None in shape else shape
    return f"({', '.join(map(str, parts))})"


def bytes_text(count: float) -> str:
    """A number of bytes in the unit that suits it."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024 or unit == "TiB":
            break
        count /= 1024
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
