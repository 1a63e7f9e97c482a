"""Values on the command line that are not options of a build, and how sizes are printed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from packer.config.values import meant_size, parse_size
from readers.stores.open_store import url_of

EVERY = 1 << 40
"""More pairs than any data set has."""


_DEEP = re.compile("([1-9][0-9]{0,5})[x×]([1-9][0-9]{0,5})[x×]([1-9][0-9]{0,5})")


class CropType(click.ParamType[Any]):
    """`512x512` is a height and a width, `64x128x128` also has the depth of volumes."""

    name = "HxW"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if (volume := _DEEP.fullmatch(str(value))) is not None:
            return tuple(map(int, volume.groups()))
        try:
            size = parse_size(value)
        except ValueError:
            size = None
        if not isinstance(size, tuple):
            self.fail(f"{value!r}: expected height x width, such as 512x512{meant_size(str(value))}", param, ctx)
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
            numbers = re.findall(r"\d{1,6}", str(value))
            meant = f"; did you mean {','.join(numbers)}?" if re.fullmatch(r"\d+([x/;:\s]+\d+)+", str(value)) else ""
            self.fail(f"{value!r}: expected numbers of at least {self._least}, such as 8,16{meant}", param, ctx)
        return tuple(sorted({int(word) for word in words}))


class RanksType(click.ParamType[Any]):
    """`0.5,50,99.5` are percentiles."""

    name = "N,N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        words = value if isinstance(value, tuple) else str(value).split(",")
        try:
            ranks = tuple(map(float, words))
        except ValueError:
            ranks = ()
        if not ranks or not all(0 <= rank <= 100 for rank in ranks):
            self.fail(f"{value!r}: expected numbers from 0 to 100, such as 0.5,50,99.5", param, ctx)
        return tuple(sorted(set(ranks)))


class NamesType(click.ParamType[Any]):
    """`image,label` are names."""

    name = "NAME,NAME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if isinstance(value, tuple) else tuple(word.strip() for word in str(value).split(","))


class OutputFile(click.Path):
    """A file to write. Its folder must exist, so that a mistake is known before the work and not after it."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(str(super().convert(value, param, ctx)))
        if not path.absolute().parent.is_dir():
            self.fail(f"{path}: there is no folder {path.parent}", param, ctx)
        return path


class FolderType(click.Path):
    """A folder of this machine, for what cannot be done in a store. `instead` says what to do, with {url}."""

    def __init__(self, instead: str = "first make a copy: packer stage {url} FOLDER") -> None:
        super().__init__(path_type=Path)
        self._instead = instead

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if (url := url_of(value)) is not None:
            advice = self._instead.format(url=url)
            self.fail(f"{value}: expected a folder of this machine, and no URL; {advice}", param, ctx)
        return super().convert(value, param, ctx)


class TimeType(click.ParamType[Any]):
    """`24h` is a time; its value is in seconds. Only 0 needs no unit."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = str(value).strip()
        match = re.fullmatch(r"(\d{1,9})\s*([smhd])", text)
        if match is None and not re.fullmatch("0+", text):
            meant = f"; did you mean {text}h?" if re.fullmatch(r"\d{1,9}", text) else ""
            self.fail(f"{value!r}: expected a time such as 90s, 30m, 24h or 7d{meant}", param, ctx)
        return float(int(match[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]]) if match else 0.0


class PackType(click.ParamType[Any]):
    """A folder, or a URL, which stays a text: a path would lose one of its slashes."""

    name = "PATH"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return url_of(value) or Path(str(value))


class CountType(click.ParamType[Any]):
    """`64` is a number of pairs; `all` is every pair."""

    name = "N|all"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, int):
            return value
        text = str(value).strip()
        if text.lower() == "all":
            return EVERY
        return int(text) if re.fullmatch("[1-9][0-9]{0,8}", text) else self.fail(f"{text!r}: expected a number, or all")


def shape_text(shape: Sequence[int | None]) -> str:
    """The shape of a row: (3, H, W) if each row has its own height and width, (1, D, H, W) of volumes."""
    own = shape.count(None)
    parts = [*shape[:-own], *"DHW"[-own:]] if own else shape
    return f"({', '.join(map(str, parts))})"


def bytes_text(count: float) -> str:
    """A number of bytes in the unit that suits it."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024 or unit == "TiB":
            break
        count /= 1024
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
