"""Kinds of option values: a text such as `512x1024` becomes a typed value, and a typed value becomes a text."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packer.classes.values import is_values
from packer.data_checks.findings import KINDS
from packer.errors import UsageError, did_you_mean
from packer.pairs.folds import MOST_FOLDS
from packer.pairs.split_by_hash import Shares
from packer.pixels.choices import ENCODINGS, NATIVE, band_choice, bands_text, no_data_choice
from readers.contract.classes import ClassTable
from readers.stores.open_store import url_of

UNITS = {"": 1, "B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "KB": 10**3, "MB": 10**6, "GB": 10**9}
NONE = "none"
YES, NO = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


@dataclass(frozen=True)
class Kind:
    """A kind of value. `parse` raises ValueError with what it expected; `format` turns a value into a text."""

    metavar: str
    parse: Callable[[Any], Any]
    format: Callable[[Any], str] = str
    choices: tuple[str, ...] = ()
    is_path: bool = False
    is_plain: Callable[[str], bool] = lambda text: False
    """Returns whether a text is not a path, of a kind of paths that also has other values."""

    def names_path(self, text: str) -> bool:
        """Return whether a text of this kind is the path of a file or folder."""
        return self.is_path and not self.is_plain(text)


def choice(names: Sequence[str]) -> Kind:
    """One of these names, in any case."""

    def parse(value: object) -> str:
        word = str(value)
        if (name := word.strip().lower()) not in names:
            expected = f"{', '.join(names[:-1])} or {names[-1]}"
            raise ValueError(f"{word!r}: expected {expected}{did_you_mean(word, names)}")
        return name

    return Kind("|".join(names), parse, choices=tuple(names))


def number(*numbers: int) -> Kind:
    """One of these numbers."""
    texts = choice(tuple(map(str, numbers)))
    return Kind(texts.metavar, lambda value: int(texts.parse(value)), choices=texts.choices)


def whole(least: int, most: int = 1 << 62, metavar: str = "N") -> Kind:
    """A whole number in a range."""

    def parse(value: object) -> int:
        if not re.fullmatch(r"[0-9]{1,19}", text := str(value).strip()) or not least <= int(text) <= most:
            limits = f"from {least} to {most}" if most < 1 << 62 else f"of at least {least}"
            raise ValueError(f"{text!r}: expected a whole number {limits}")
        return int(text)

    return Kind(metavar, parse)


def text(metavar: str) -> Kind:
    """Any text."""
    return Kind(metavar, str)


def parse_flag(value: object) -> bool:
    """`true` or `false`, as TOML and environment variables write them."""
    if isinstance(value, bool):
        return value
    if (word := str(value).strip().lower()) not in YES + NO:
        raise ValueError(f"{word!r}: expected true or false")
    return word in YES


def parse_size(value: object) -> Any:
    """`512x1024` is a height and a width; `native` keeps the size of each picture."""
    text = format_size(value)
    if text.strip().lower() == NATIVE:
        return NATIVE
    match = re.fullmatch(r"(\d{1,5})[x×](\d{1,5})", text.strip().lower())
    if match is None or 0 in (size := (int(match[1]), int(match[2]))):
        raise ValueError(f"{text!r}: expected height x width, such as 512x1024, or native{meant_size(text)}")
    return size


def meant_size(text: str) -> str:
    """The end of a message about a wrong size such as `512` or `512,256`: the size that was probably meant."""
    match = re.fullmatch(r"([1-9]\d{0,4})(?:\s*[*,/:;xX×\s]\s*([1-9]\d{0,4}))?", text.strip())
    return f"; did you mean {match[1]}x{match[2] or match[1]}?" if match else ""


def format_size(value: Any) -> str:
    return "x".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)


def parse_range(value: object) -> tuple[float, float]:
    """`0,10000` is the number that becomes 0 and the number that becomes 1."""
    number = r"\s*([+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d{1,2})?)\s*"
    text = format_range(value)
    match = re.fullmatch(f"{number},{number}", text)
    if match is None or not (limits := (float(match[1]), float(match[2])))[0] < limits[1]:
        raise ValueError(f"{text!r}: expected a low and a higher number, such as 0,10000{_meant_range(text)}")
    return limits


def _meant_range(text: str) -> str:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*[-/:;\s]\s*(\d+(?:\.\d+)?)\s*", text)
    return f"; did you mean {match[1]},{match[2]}?" if match and float(match[1]) < float(match[2]) else ""


def format_range(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)


def parse_bytes(value: object) -> int:
    """`128MiB` is a number of bytes."""
    match = re.fullmatch(r"(\d{1,15})\s*([A-Za-z]*)", str(value).strip())
    if match is None or match[2].upper() not in UNITS or int(match[1]) == 0:
        short = match and re.fullmatch("[KMG]", match[2].upper())
        meant = f"; did you mean {match[1]}{match[2].upper()}iB?" if match and short else ""
        raise ValueError(f"{str(value)!r}: expected a size such as 64MiB{meant}")
    return int(match[1]) * UNITS[match[2].upper()]


def parse_limit(value: object) -> float:
    """`5` is a number of pairs; `0.1%` is a share of them, which is returned as a number below 1."""
    limit = format_limit(value).strip()
    if re.fullmatch(r"\d{1,18}", limit):
        return float(limit)
    if re.fullmatch(r"\d{1,2}(\.\d+)?%|0?\.\d+%", limit):
        return float(limit[:-1]) / 100
    share = re.fullmatch(r"(\d{1,2}(?:\.\d+)?)\s+%|(0?\.\d+)", limit)
    meant = f"; did you mean {share[1] or f'{100 * float(share[2]):g}'}%?" if share else ""
    raise ValueError(f"{limit!r}: expected a number of pairs, or a share such as 0.1%{meant}")


def format_limit(value: Any) -> str:
    if isinstance(value, float) and 0 < value < 1:
        return f"{100 * value:.12f}".rstrip("0").rstrip(".") + "%"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def parse_shares(value: object) -> Shares:
    """`80/10/10` are percents of train, val and test; `train=90,val=10` names the splits."""
    try:
        return Shares.parse(format_shares(value))
    except UsageError as error:
        raise ValueError(str(error).removeprefix("--split ")) from error


def format_shares(value: Any) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{split}={percent}" for split, percent in value.items())
    return str(value)


def parse_folds(value: object) -> int | Path:
    """`5` is a number of folds; any other text is the path of a file that names their cases."""
    if not is_count(text := str(value)):
        return Path(text)
    if not 2 <= int(text) <= MOST_FOLDS:
        raise ValueError(f"{text!r}: expected 2 to {MOST_FOLDS} folds, or a file such as splits_final.json")
    return int(text)


def parse_blocks(value: object) -> tuple[int, int]:
    """`4096,256` is the side of square blocks and a margin around tiles, in pixels; the margin may be left out."""
    text = format_range(value)
    match = re.fullmatch(r"\s*([1-9][0-9]{0,6})\s*(?:,\s*([0-9]{1,7})\s*)?", text, re.ASCII)
    if match is None:
        raise ValueError(f"{text!r}: expected the side of blocks in pixels, and perhaps a margin, such as 4096,256")
    return int(match[1]), int(match[2] or 0)


def is_count(text: str) -> bool:
    """Tell a number of folds, even an impossible one such as `1`, from the name of a file."""
    return re.fullmatch(r"\s*[+-]?[0-9]{1,9}\s*", text, re.ASCII) is not None


def parse_classes(value: object) -> str | ClassTable:
    """A class table, the path of one, or values such as `12`, `1-150` and `0,255`."""
    return value if isinstance(value, ClassTable) else str(value)


def parse_kinds(value: object) -> tuple[str, ...]:
    """`leakage,absent-class` are kinds of findings."""
    kinds = tuple(word.strip() for word in format_kinds(value).split(","))
    for kind in kinds:
        _check_kind(kind)
    return kinds


def format_kinds(value: Any) -> str:
    return value if isinstance(value, str) else ",".join(value)


_QUALITY = r"(?::(?:keep|[1-9]\d?|100))?"
_TILE = r":[1-9]\d{0,4}(?:[x×][1-9]\d{0,4}){0,2}"
_ENCODING = re.compile(rf"([^=]+)=(raw|zstd|jpeg{_QUALITY}|tiles{_TILE}|tiles-zstd{_TILE}|tiles-jpeg{_TILE}{_QUALITY})")


def parse_encoding(value: object) -> tuple[str, str]:
    """`label=zstd`, `image=jpeg:95` and `image=tiles:256` are encodings of a field."""
    text = format_encoding(value)
    match = _ENCODING.fullmatch(text.strip())
    if match is None:
        name = text.partition("=")[2].partition(":")[0]
        meant = "" if name in ENCODINGS else did_you_mean(name, ENCODINGS)
        raise ValueError(
            f"{text!r}: expected a field and raw, zstd, jpeg:1 to jpeg:100, jpeg:keep, tiles:256, tiles-zstd:256 or "
            f"tiles-jpeg:256:95, with tiles of 16 to 4096, such as label=zstd{meant}"
        )
    return match[1], match[2]


def format_encoding(value: Any) -> str:
    return "=".join(map(str, value)) if isinstance(value, tuple) else str(value)


def parse_accept(value: object) -> str:
    """`leakage:train/a=val/b` is one finding; `leakage` is every finding of this kind."""
    _check_kind(str(value).partition(":")[0])
    return str(value)


def _check_kind(kind: str) -> None:
    if kind not in KINDS:
        raise ValueError(f"{kind!r}: expected a kind of finding: {', '.join(KINDS)}{did_you_mean(kind, KINDS)}")


def parse_number(value: object) -> float:
    """`-1024` is a number."""
    if not re.fullmatch(r"[+-]?\d+(\.\d*)?([eE][+-]?\d{1,2})?", text := str(value).strip()):
        raise ValueError(f"{text!r}: expected a number, such as -1024")
    return float(text)


SIZE = Kind("HxW|native", parse_size, format_size)
RANGE = Kind("LOW,HIGH", parse_range, format_range)
NUMBER = Kind("NUMBER", parse_number)
BANDS = Kind("all|gray|rgb|BAND,BAND", band_choice, lambda value: bands_text(band_choice(value)))
NO_DATA = Kind("file|none|NUMBER", no_data_choice)
BYTES = Kind("BYTES", parse_bytes)
LIMIT = Kind("N|N%", parse_limit, format_limit)
SHARES = Kind("PERCENTS", parse_shares, format_shares)
CLASSES = Kind("FILE|N|A-B|A,B", parse_classes, is_path=True, is_plain=is_values)
BLOCKS = Kind("N[,N]", parse_blocks, format_range)
FOLDS = Kind("N|FILE", parse_folds, is_path=True, is_plain=is_count)


def parse_orient(value: object) -> str:
    """`RAS` is the direction of each axis of a volume: to the right, the front and the head."""
    word = str(value).strip()
    if word.lower() == NONE:
        return NONE
    if len(word) != 3 or any(not set(word.upper()) & set(pair) for pair in ("LR", "AP", "IS")):
        raise ValueError(f"{word!r}: expected a letter of L and R, of A and P, and of I and S, such as RAS, or none")
    return word.upper()


def parse_spacing(value: object) -> tuple[float, ...]:
    """`3,1,1` are millimetres from slice to slice, from row to row and from column to column."""
    text = format_range(value)
    words = [word.strip() for word in text.split(",")]
    if len(words) != 3 or not all(re.fullmatch(r"\d{1,6}(\.\d{1,9})?|\.\d{1,9}", word) for word in words):
        raise ValueError(f"{text!r}: expected three distances in mm, of slices, rows and columns, such as 3,1,1")
    steps = tuple(map(float, words))
    if not all(steps):
        raise ValueError(f"{text!r}: expected distances above 0")
    return steps


def parse_resolution(value: object) -> float:
    """`10` is the side of a pixel of a map, in the units of its coordinates: mostly metres, or degrees."""
    side = parse_number(value)
    if not 0 < side < math.inf:
        raise ValueError(f"{side:g}: expected the side of a pixel in the units of the map, such as 10 metres")
    return side


def path_text(path: str | os.PathLike[str]) -> str:
    """Return a path as text. A URL gets back the slash that its `Path` has lost."""
    return url_of(path) or os.fspath(path)


PATH = Kind("PATH", Path, path_text, is_path=True)
FILE = Kind("FILE", Path, os.fspath, is_path=True)
FINDING_KINDS = Kind("KIND,KIND", parse_kinds, format_kinds)
ENCODING = Kind("FIELD=ENCODING", parse_encoding, format_encoding)
ACCEPTED = Kind("KIND:NAME", parse_accept)
RESOLUTION = Kind("SIDE", parse_resolution)
SPACING = Kind("SLICE,ROW,COLUMN", parse_spacing, format_range)
ORIENT = Kind("RAS|LPS|…|none", parse_orient)
FLAG = Kind("", parse_flag)
