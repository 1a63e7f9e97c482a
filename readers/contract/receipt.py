"""`Receipt`: the description of a built shard, in a small JSON file next to it that is written last."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, starmap
from pathlib import Path
from typing import Any, NamedTuple

from readers.contract.errors import DamagedError
from readers.contract.json_entry import Entry, JsonProblem, loads
from readers.contract.json_lines import json_lines
from readers.contract.manifest import DIGEST, NAME, STORAGES
from readers.contract.place import Place, places_json, read_places
from readers.contract.statistics import Statistics, read_statistics, statistics_json

SUFFIX = ".receipt.json"
FLAT = "flat"
"""Replaces the difference hash of an image of one colour: these have all the same."""
LOOKS = re.compile(rf"^[0-9a-f]{{8}}(?:[0-9a-f]{{16}}|{FLAT})$", re.MULTILINE)
FINGERPRINT = re.compile(r"[0-9a-f]{32}")
PSNR, MOST_PSNR = "psnr", 10_000
PLACES = "places"
MOST_NOTE = 500
"""The characters that a note may have."""
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""The characters that a note must not have."""


@dataclass(frozen=True)
class ShardFile:
    """A file of a shard: the part of its name after the shard's stem, its size and its BLAKE3."""

    suffix: str
    bytes: int
    blake3: str


class RowInput(tuple[str, ...]):
    """The input of a row: its key, then for each field of the shard a text that identifies what was read, such as the
    BLAKE3 of a file; empty if nothing was read."""

    __slots__ = ()

    def __new__(cls, key: str, *identities: str) -> RowInput:
        return super().__new__(cls, (key, *identities))

    def __getnewargs__(self) -> tuple[str, ...]:
        return tuple(self)

    @property
    def key(self) -> str:
        return self[0]

    @property
    def identities(self) -> tuple[str, ...]:
        return self[1:]


class Reject(NamedTuple):
    """A pair that is not in the shard, and the reason."""

    key: str
    reason: str


class Note(NamedTuple):
    """A fact about a row that was packed nevertheless, such as "2 polygons cover no pixel"."""

    key: str
    text: str


@dataclass(frozen=True)
class Receipt:
    """The description of a built shard: its rows, rejects, notes, files and checksums."""

    split: str
    fingerprint: str
    storage: str
    recipe: str
    fields: tuple[str, ...]
    """The names of the fields that the shard has."""
    sources: tuple[RowInput, ...]
    rejects: tuple[Reject, ...]
    notes: tuple[Note, ...]
    """In the order of the rows, at most one for each."""
    files: tuple[ShardFile, ...]
    crc32: Mapping[str, tuple[int, ...]]
    """For each of `fields` the CRC-32 of the stored bytes of each row."""
    looks: tuple[str, ...]
    """For the first picture of each row: its CRC-32, then its difference hash or `flat`, in hex digits. Empty if the
    rows have no picture."""
    statistics: Statistics
    counts: Mapping[str, int] = field(default_factory=dict)
    """The sums of what the source counted in the rows, by the words behind each number: "objects painted"."""
    psnr: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """For each field that is stored as JPEG the PSNR of each row, in hundredths of a decibel."""
    places: tuple[Place | None, ...] = ()
    """The place of each row in the world, None if its files do not say it. Empty if no row has a place."""
    digest: str = field(default="", compare=False)
    """The SHA-256 of the file that it was read from."""

    @property
    def stem(self) -> str:
        return shard_stem(self.split, self.fingerprint)

    @property
    def rows(self) -> int:
        return len(next(iter(self.crc32.values()), ()))

    @property
    def row_checksums(self) -> list[tuple[int, ...]]:
        """The CRC-32 of each row: one for each of `fields`."""
        return list(zip(*self.crc32.values(), strict=True))

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
            "fields": self.fields,
            "sources": self.sources,
            "rejects": self.rejects,
            "notes": self.notes,
            **({"counts": dict(self.counts)} if self.counts else {}),
            "files": [{"suffix": file.suffix, "bytes": file.bytes, "blake3": file.blake3} for file in self.files],
            "crc32": self.crc32,
            "looks": self.looks,
            "statistics": statistics_json(self.statistics),
            **({PSNR: self.psnr} if self.psnr else {}),
            **({PLACES: places_json(self.places)} if self.places else {}),
        }
        return "".join(json_lines(document)) + "\n"

    @classmethod
    def from_text(cls, text: str, path: object) -> Receipt:
        """Read a receipt, or raise a DamagedError that names every problem."""
        try:
            document = loads(text)
        except (ValueError, RecursionError) as error:
            raise DamagedError(f"{path}: is not JSON ({error})") from error
        problems: list[JsonProblem] = []
        entry = Entry(document, "", problems)
        fields = entry.texts("fields")
        receipt = cls(
            split=entry.text("split"),
            fingerprint=entry.text("fingerprint"),
            storage=entry.choice("storage", STORAGES),
            recipe=entry.text("recipe"),
            fields=fields,
            sources=tuple(starmap(RowInput, _rows(entry, "sources", 1 + len(fields)))),
            rejects=tuple(starmap(Reject, _rows(entry, "rejects", 2))),
            notes=tuple(starmap(Note, _rows(entry, "notes", 2))),
            counts=_counts(entry) if entry.has("counts") else {},
            files=tuple(_file(file) for file in entry.entries("files")),
            crc32=_checksums(entry.entry("crc32"), fields),
            looks=entry.texts("looks"),
            statistics=read_statistics(entry, "statistics"),
            psnr=_psnr(entry.entry(PSNR), fields) if entry.has(PSNR) else {},
            places=read_places(entry.entry(PLACES)) if entry.has(PLACES) else (),
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


def shard_stem(split: str, fingerprint: str) -> str:
    """Return the common beginning of the names of a shard's files."""
    return f"{split}-{fingerprint}"


def _file(entry: Entry) -> ShardFile:
    file = ShardFile(entry.text("suffix"), entry.whole("bytes"), entry.text("blake3"))
    if not re.fullmatch(r"(\.[a-z0-9_]+)+", file.suffix):
        entry.problem("suffix", f"expected a suffix such as .image.npy, found {file.suffix!r}")
    if not DIGEST.fullmatch(file.blake3):
        entry.problem("blake3", "expected 64 hex digits")
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


def _counts(entry: Entry) -> dict[str, int]:
    """Take words that a report can show, with a number from 1 on each."""
    counts = entry.anything("counts")
    valid = (type(count) is int and 0 < count < 2**63 and is_note(words) for words, count in counts.items())
    if counts and all(valid):
        return counts
    entry.problem("counts", "expected words with a number from 1 on each")
    return {}


def _checksums(entry: Entry, fields: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Take a list of CRC-32 for each field, all of one length."""
    checksums = {name: entry.wholes(name) for name in fields}
    entry.close()
    for name, sums in checksums.items():
        if max(sums, default=0) >= 2**32:
            entry.problem(name, "expected numbers below 2^32")
    if len(set(map(len, checksums.values()))) > 1:
        entry.problem("", "expected lists of the same length")
    return checksums


def _psnr(entry: Entry, fields: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Take a list of PSNR for some of the fields."""
    qualities = {name: entry.wholes(name) for name in fields if entry.has(name)}
    entry.close()
    for name, values in qualities.items():
        if max(values, default=0) > MOST_PSNR:
            entry.problem(name, f"expected numbers up to {MOST_PSNR}")
    return qualities


def _check(receipt: Receipt, problems: list[JsonProblem]) -> None:
    """Check that the parts of a receipt agree with each other."""
    if not NAME.fullmatch(receipt.split):
        problems.append(JsonProblem("split", f"expected the name of a split, found {receipt.split!r}"))
    if not FINGERPRINT.fullmatch(receipt.fingerprint):
        problems.append(JsonProblem("fingerprint", "expected 32 hex digits"))
    if not receipt.fields or len(set(receipt.fields)) < len(receipt.fields):
        problems.append(JsonProblem("fields", f"expected different names, found {list(receipt.fields)}"))
    lines, rows = "\n".join(receipt.looks), receipt.rows
    if receipt.looks and not (len(LOOKS.findall(lines)) == len(receipt.looks) == rows and lines.count("\n") < rows):
        problems.append(JsonProblem("looks", f"expected {rows} texts such as 0123abcd0123456789abcdef"))
    if any(len(values) != rows for values in receipt.psnr.values()):
        problems.append(JsonProblem(PSNR, f"expected {rows} numbers for each field"))
    if receipt.places and len(receipt.places) != rows:
        problems.append(JsonProblem(PLACES, f"expected a place or an empty list for each of {rows} rows"))
    if receipt.rows + len(receipt.rejects) != len(receipt.sources):
        problems.append(
            JsonProblem("crc32", f"{rows} rows and {len(receipt.rejects)} rejects of {len(receipt.sources)} pairs")
        )
    problems += _wrong_notes(receipt)


def is_note(text: str) -> bool:
    """Return whether a line of a report can show a text."""
    return 0 < len(text) <= MOST_NOTE and not CONTROL.search(text)


def _wrong_notes(receipt: Receipt) -> Iterator[JsonProblem]:
    """Yield the first note that is not of a row, in order, or whose text no line of a report can show."""
    keys = iter(receipt.keys if receipt.notes else ())
    for number, note in enumerate(receipt.notes):
        if note.key not in keys:  # looks for it after the key of the note before
            yield JsonProblem(f"notes.{number}", "is not of a row, or not in the order of the rows")
            return
        if not is_note(note.text):
            yield JsonProblem(f"notes.{number}", f"expected 1 to {MOST_NOTE} characters without control characters")
            return
