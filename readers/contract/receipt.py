"""`Receipt`: the description of a built shard, in a small JSON file next to it that is written last."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import chain, starmap
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any, NamedTuple

from readers.contract.errors import DamagedError
from readers.contract.json_entry import Entry, Problem
from readers.contract.manifest import DIGEST, NAME, STORAGES
from readers.contract.pixel_sums import Pixels

SUFFIX = ".receipt.json"
FLAT = "flat"
"""Replaces the difference hash of an image of one colour: these have all the same."""
LOOKS = re.compile(rf"^[0-9a-f]{{8}}(?:[0-9a-f]{{16}}|{FLAT})$", re.MULTILINE)
FINGERPRINT = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class ShardFile:
    """A file of a shard: the part of its name after the shard's stem, its size and its SHA-256."""

    suffix: str
    bytes: int
    sha256: str


class Source(NamedTuple):
    """A raw pair: its key, and the SHA-256 of both files when they were read (empty if one was not read)."""

    key: str
    image: str
    label: str


class Reject(NamedTuple):
    """A pair that is not in the shard, and the reason."""

    key: str
    reason: str


@dataclass(frozen=True)
class Receipt:
    """The description of a built shard: its pairs, rejects, files and checksums."""

    split: str
    fingerprint: str
    storage: str
    recipe: str
    sources: tuple[Source, ...]
    rejects: tuple[Reject, ...]
    files: tuple[ShardFile, ...]
    crc32: tuple[int, ...]
    looks: tuple[str, ...]
    """For each row's image: its CRC-32, then its difference hash or `flat`, in hex digits."""
    pixels: Pixels
    digest: str = field(default="", compare=False)
    """The SHA-256 of the file that it was read from."""

    @property
    def stem(self) -> str:
        return shard_stem(self.split, self.fingerprint)

    @property
    def rows(self) -> int:
        return len(self.crc32)

    @property
    def keys(self) -> list[str]:
        """The key of each row."""
        rejected = {reject.key for reject in self.rejects}
        keys = [source.key for source in self.sources]
        return [key for key in keys if key not in rejected] if rejected else keys

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    def with_files(self, files: Iterable[ShardFile]) -> Receipt:
        """Return the same receipt with these files."""
        return replace(self, files=tuple(files), digest="")

    def to_text(self) -> str:
        document: dict[str, Any] = {
            "split": self.split,
            "fingerprint": self.fingerprint,
            "storage": self.storage,
            "recipe": self.recipe,
            "sources": [[source.key, source.image, source.label] for source in self.sources],
            "rejects": [[reject.key, reject.reason] for reject in self.rejects],
            "files": [{"suffix": file.suffix, "bytes": file.bytes, "sha256": file.sha256} for file in self.files],
            "crc32": list(self.crc32),
            "looks": list(self.looks),
            "pixels": self.pixels.to_json(),
        }
        return _as_lines(document) + "\n"

    @classmethod
    def from_text(cls, text: str, path: object) -> Receipt:
        """Read a receipt, or raise a DamagedError that names every problem."""
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DamagedError(f"{path}: is not JSON ({error})") from error
        problems: list[Problem] = []
        entry = Entry(document, "", problems)
        receipt = cls(
            split=entry.text("split"),
            fingerprint=entry.text("fingerprint"),
            storage=entry.choice("storage", STORAGES),
            recipe=entry.text("recipe"),
            sources=tuple(starmap(Source, _rows(entry, "sources", 3))),
            rejects=tuple(starmap(Reject, _rows(entry, "rejects", 2))),
            files=tuple(_file(file) for file in entry.entries("files")),
            crc32=entry.wholes("crc32"),
            looks=entry.texts("looks"),
            pixels=Pixels.from_json(entry.entry("pixels")),
        )
        entry.close()
        _check(receipt, problems)
        if problems:
            raise DamagedError(f"{path}: " + "; ".join(str(problem) for problem in problems))
        return receipt

    @classmethod
    def load(cls, path: Path) -> Receipt:
        try:
            data = path.read_bytes()
            text = data.decode()
        except (OSError, UnicodeDecodeError) as error:
            raise DamagedError(f"{path}: the receipt cannot be read ({error})") from error
        return replace(cls.from_text(text, path), digest=hashlib.sha256(data).hexdigest())


def _as_lines(value: Any) -> str:
    """Return `json.dumps(value, indent=0, ensure_ascii=False)` of a receipt. Python's fast encoder cannot indent."""
    if isinstance(value, dict):
        return _indented("{", [f"{_scalars(name)}: {_as_lines(member)}" for name, member in value.items()], "}")
    if not isinstance(value, list):
        return _scalars(value)
    if not value or not isinstance(value[0], (list, dict)):
        return _indented("[", [_scalars(value)[1:-1]] if value else [], "]")
    if isinstance(value[0], list):
        return _indented("[", [_indented("[", list(map(encode_basestring, texts)), "]") for texts in value], "]")
    return _indented("[", list(map(_as_lines, value)), "]")


def _indented(start: str, lines: list[str], end: str) -> str:
    return "\n".join([start, ",\n".join(lines), end]) if lines else start + end


_scalars = json.JSONEncoder(ensure_ascii=False, separators=(",\n", ": ")).encode


def shard_stem(split: str, fingerprint: str) -> str:
    """Return the common beginning of the names of a shard's files."""
    return f"{split}-{fingerprint}"


def _file(entry: Entry) -> ShardFile:
    file = ShardFile(entry.text("suffix"), entry.whole("bytes"), entry.text("sha256"))
    if not re.fullmatch(r"(\.[a-z0-9_]+)+", file.suffix):
        entry.problem("suffix", f"expected a suffix such as .image.npy, found {file.suffix!r}")
    if not DIGEST.fullmatch(file.sha256):
        entry.problem("sha256", "expected 64 hex digits")
    entry.close()
    return file


def _rows(entry: Entry, key: str, width: int) -> list[list[str]]:
    """Take a list of lists of `width` texts."""
    rows = entry.lists(key)
    if set(map(len, rows)) <= {width} and set(map(type, chain.from_iterable(rows))) <= {str}:
        return rows
    bad = next(index for index, row in enumerate(rows) if len(row) != width or {*map(type, row)} != {str})
    entry.problem(f"{key}.{bad}", f"expected {width} texts")
    return []


def _check(receipt: Receipt, problems: list[Problem]) -> None:
    """Check that the parts of a receipt agree with each other."""
    if not NAME.fullmatch(receipt.split):
        problems.append(Problem("split", f"expected the name of a split, found {receipt.split!r}"))
    if not FINGERPRINT.fullmatch(receipt.fingerprint):
        problems.append(Problem("fingerprint", "expected 32 hex digits"))
    lines = "\n".join(receipt.looks)
    if not len(receipt.looks) == len(LOOKS.findall(lines)) == receipt.rows or lines.count("\n") >= max(1, receipt.rows):
        problems.append(Problem("looks", f"expected {receipt.rows} texts such as 0123abcd0123456789abcdef"))
    if receipt.rows + len(receipt.rejects) != len(receipt.sources):
        problems.append(
            Problem("crc32", f"{receipt.rows} rows and {len(receipt.rejects)} rejects of {len(receipt.sources)} pairs")
        )
