"""What option values look like: sizes, byte counts, limits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import click

from packer.pairs.split_by_hash import Shares
from packer.pixels.resize import NATIVE
from readers.contract.classes import ClassTable

EVERY = 1 << 40
"""More pairs than anybody has."""
UNITS = {"": 1, "B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "KB": 10**3, "MB": 10**6, "GB": 10**9}


class SizeType(click.ParamType[Any]):
    """`512x1024` is a height and a width; `native` is each picture's own."""

    name = "HxW|native"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == NATIVE:
            return value
        found = re.fullmatch(r"(\d{1,5})[x×](\d{1,5})", str(value).strip().lower())
        if found is None or 0 in (size := (int(found[1]), int(found[2]))):
            self.fail(f"{value!r}: expected height x width, such as 512x1024, or native", param, ctx)
        return size


class CropType(SizeType):
    """`512x512` is a height and a width."""

    name = "HxW"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == NATIVE:
            self.fail(f"{value!r}: expected height x width, such as 512x512", param, ctx)
        return super().convert(value, param, ctx)


class NumbersType(click.ParamType[Any]):
    """`8,16` are numbers, from `least` on."""

    name = "N,N"

    def __init__(self, least: int) -> None:
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        words = [word.strip() for word in str(value).split(",")]
        if not all(re.fullmatch(r"\d{1,6}", word) and int(word) >= self._least for word in words):
            self.fail(f"{value!r}: expected numbers from {self._least} on, such as 8,16", param, ctx)
        return tuple(sorted({int(word) for word in words}))


class ClassesType(click.ParamType[Any]):
    """The name of a class table or a text of values, for others to read; or the classes that a configuration tells."""

    name = "FILE|N|A-B|A,B"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if isinstance(value, ClassTable) else str(value)


class RangeType(click.ParamType[Any]):
    """`0,10000` is what becomes 0 and 1."""

    name = "LOW,HIGH"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = r"\s*([+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d{1,2})?)\s*"
        found = re.fullmatch(f"{number},{number}", str(value))
        if found is None or not (limits := (float(found[1]), float(found[2])))[0] < limits[1]:
            self.fail(f"{value!r}: expected a low and a higher number, such as 0,10000", param, ctx)
        return limits


class BytesType(click.ParamType[Any]):
    """`128MiB` is a number of bytes."""

    name = "BYTES"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = re.fullmatch(r"(\d+)\s*([A-Za-z]*)", str(value).strip())
        if found is None or found[2].upper() not in UNITS or int(found[1]) == 0:
            self.fail(f"{value!r}: expected a size such as 64MiB", param, ctx)
        return int(found[1]) * UNITS[found[2].upper()]


class TimeType(click.ParamType[Any]):
    """`24h` is a time; seconds come out."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = re.fullmatch(r"(\d{1,9})\s*([smhd])", str(value).strip())
        if found is None:
            self.fail(f"{value!r}: expected a time such as 90s, 30m, 24h or 7d", param, ctx)
        return float(int(found[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[found[2]])


class LimitType(click.ParamType[Any]):
    """`5` is a number of pairs, `0.1%` a share of them; a share is given below 1."""

    name = "N|N%"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = str(value).strip()
        if re.fullmatch(r"\d+", text):
            return float(text)
        if re.fullmatch(r"\d{1,2}(\.\d+)?%|0?\.\d+%", text):
            return float(text[:-1]) / 100
        return self.fail(f"{value!r}: expected a number of pairs, or a share such as 0.1%", param, ctx)


class CountType(click.ParamType[Any]):
    """`64` is a number of pairs; `all` is every one."""

    name = "N|all"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, int):
            return value
        text = str(value).strip()
        if text == "all":
            return EVERY
        return int(text) if re.fullmatch("[1-9][0-9]{0,8}", text) else self.fail(f"{text!r}: expected a number, or all")


class SharesType(click.ParamType[Any]):
    """`80/10/10` are percents of train, val and test."""

    name = "PERCENTS"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if isinstance(value, Shares) else Shares.parse(str(value))


def shape_text(shape: Sequence[int | None]) -> str:
    """A row's shape as people read it: (3, H, W) where each row has a height and width of its own."""
    parts = [*shape[:-2], "H", "W"] if None in shape else shape
    return f"({', '.join(map(str, parts))})"


def bytes_text(count: float) -> str:
    """A number of bytes as people read it."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024 or unit == "TiB":
            break
        count /= 1024
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
