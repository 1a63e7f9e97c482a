"""`Manifest`: one generation of a packed data set, in one JSON file that is small for any size of data set."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from readers.contract.classes import ClassTable
from readers.contract.errors import ManifestError, NoPackError, RequestError, VersionError
from readers.contract.field_entry import check_fields, read_field
from readers.contract.fields import LABEL, Field
from readers.contract.files import plain_file
from readers.contract.json_entry import Entry, JsonProblem, fingerprint, loads
from readers.contract.no_pack import why_no_pack
from readers.contract.parts import Part, part_problems
from readers.contract.statistics import Statistics, misfit, read_statistics, statistics_json, total

FORMAT = "segpack"
FORMAT_VERSION = 2
OTHER_VERSION = (
    f"the pack has version {{}} of the format, and this release reads version {FORMAT_VERSION}; "
    "read it with the release that made it, or build it again into another folder"
)
"""The version of the format on disk. It is checked in one place: `Manifest.from_text`."""

STORAGES = ("arrow", "hdf5", "lmdb", "npy")
MANIFEST = "manifest.json"
GENERATIONS = "generations"
MARK = ".segpack"
"""A file in every folder that the packer made. Readers do not need it."""
LOCK = ".lock"
"""A file that is locked by the process that changes the pack."""
SHARDS = "shards"
LIVE = "live"
"""The folder of a pack that is read while it is built; see live.py."""
CELLS = "cells"
"""The folder with the cells of each class; see cells.py."""
ALL = "all"
"""The split of a data set without splits, and the name for every row of one with splits."""

MOST_BYTES = 16 << 20
MOST_DEPTH = 100
"""A recipe has a tenth. Each level indents all within it, so 50,000 of them, in 100 KB, would be a text of 5 GB."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
DIGEST = re.compile(r"[0-9a-f]{64}")


def is_pack(root: Path) -> bool:
    """Return whether a packed data set was published here."""
    return (root / MANIFEST).is_file()


@dataclass(frozen=True)
class Split:
    """A named part of the data set: its shards follow the shards of the split before it."""

    name: str
    rows: int
    shards: int
    rejects: int
    parts: tuple[Part, ...]
    statistics: Statistics

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "rows": self.rows,
            "shards": self.shards,
            "rejects": self.rejects,
            "parts": [part.to_json() for part in self.parts],
            "statistics": statistics_json(self.statistics),
        }

    @classmethod
    def from_json(cls, entry: Entry) -> Split:
        split = cls(
            name=entry.text("name"),
            rows=entry.whole("rows"),
            shards=entry.whole("shards"),
            rejects=entry.whole("rejects"),
            parts=tuple(Part.from_json(part) for part in entry.entries("parts")),
            statistics=read_statistics(entry, "statistics"),
        )
        if not NAME.fullmatch(split.name):
            entry.problem("name", f"expected letters, digits and ._- only, found {split.name!r}")
        entry.close()
        return split


@dataclass(frozen=True)
class Manifest:
    """One generation of a packed data set. `table` is the SHA-256, and so the name, of its shard table."""

    generation: int
    created: str
    storage: str
    fields: tuple[Field, ...]
    splits: tuple[Split, ...]
    bytes: int
    table: str
    recipe: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return sum(split.rows for split in self.splits)

    @property
    def shards(self) -> int:
        return sum(split.shards for split in self.splits)

    @property
    def statistics(self) -> Statistics:
        """The statistics of all splits together."""
        return total(self.fields, (split.statistics for split in self.splits))

    def statistics_of(self, *splits: str) -> Statistics:
        """Return the statistics of some splits together; "all" means all of them."""
        return total(self.fields, (entry.statistics for entry in self.splits if {entry.name, ALL} & {*splits}))

    @property
    def classes(self) -> ClassTable:
        """The class table of the field `label`, or else of the first field that has one; empty if none has."""
        tables = {field.name: field.classes for field in self.fields if field.classes is not None}
        return tables.get(LABEL) or next(iter(tables.values()), ClassTable(()))

    @property
    def unlabelled(self) -> int:
        """The number of rows without a label, if others may have one."""
        if LABEL not in (field.name for field in self.fields):
            return 0
        parts = [part for split in self.splits for part in split.parts]
        return sum(part.rows for part in parts if LABEL not in part.fields)

    def field(self, name: str) -> Field:
        """Return the field with this name."""
        fields = {field.name: field for field in self.fields}
        if name not in fields:
            raise RequestError(f"there is no field {name!r}, only {', '.join(map(repr, fields))}")
        return fields[name]

    def same_data(self, other: Manifest) -> bool:
        """Return whether both describe the same data: they are equal except for the generation's number and time."""
        return replace(other, generation=self.generation, created=self.created) == self

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "generation": self.generation,
            "created": self.created,
            "storage": self.storage,
            "fields": [field.to_json() for field in self.fields],
            "splits": [split.to_json() for split in self.splits],
            "bytes": self.bytes,
            "table": self.table,
            "recipe": dict(self.recipe),
        }

    def to_text(self) -> str:
        """Return the exact text of the file. Its `checksum` covers everything else in it."""
        document = self.to_json()
        document["checksum"] = fingerprint(document)
        return json.dumps(document, indent=1, ensure_ascii=False) + "\n"

    @property
    def identity(self) -> str:
        """The checksum: two manifests with the same identity are the same generation of the same data."""
        return fingerprint(self.to_json())

    @classmethod
    def from_text(cls, text: str, path: object) -> Manifest:
        """Read a manifest, or raise a ManifestError with every problem. Nothing in `text` is trusted unchecked."""
        if len(text) > MOST_BYTES or len(text.encode(errors="replace")) > MOST_BYTES:
            raise _error(path, [JsonProblem("", f"is over the limit of {MOST_BYTES} bytes")])
        try:
            document = loads(text)
        except (ValueError, RecursionError) as error:
            raise _error(path, [JsonProblem("", f"is not JSON ({error})")]) from error
        problems: list[JsonProblem] = []
        entry = Entry(document, "", problems)
        stated = entry.text("format"), entry.whole("version")
        if stated != (FORMAT, FORMAT_VERSION):
            if stated[0] == FORMAT and _is_sealed(document):
                raise VersionError(f"{path}: {OTHER_VERSION.format(stated[1])}")
            cause = f"expected {FORMAT!r} version {FORMAT_VERSION}, found {stated[0]!r} version {stated[1]}"
            raise _error(path, problems or [JsonProblem("format", cause)])
        checksum = entry.text("checksum")
        manifest = _manifest(entry)
        entry.close()
        if not problems:
            _check_sums(manifest, problems)
        if not problems and not _is_text_of(manifest, text):
            problems.append(JsonProblem("checksum", f"{checksum!r} does not fit the content"))
        if problems:
            raise _error(path, problems)
        return manifest

    @classmethod
    def load(cls, root: Path, generation: int | None = None) -> Manifest:
        """Read the manifest of the pack at `root`: the current one, or the manifest of an earlier `generation`."""
        return cls.read(root, root / MANIFEST if generation is None else generation_path(root, generation))

    @classmethod
    def read(cls, root: Path, path: Path) -> Manifest:
        """Read the manifest in a file of the pack at `root`."""
        try:
            with plain_file(root, path).open("rb") as file:
                data = file.read(MOST_BYTES + 1)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NoPackError(why_no_pack(root, path)) from error
        if len(data) > MOST_BYTES:
            raise _error(path, [JsonProblem("", f"is over the limit of {MOST_BYTES} bytes")])
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise _error(path, [JsonProblem("", f"is not UTF-8 ({error})")]) from error
        return cls.from_text(text, path)


def generation_path(root: Path, generation: int) -> Path:
    """Return the path of a generation's own manifest."""
    return root / GENERATIONS / f"{generation:06d}.json"


def _is_text_of(manifest: Manifest, text: str) -> bool:
    if _depth(manifest.recipe) > MOST_DEPTH:
        return False
    try:
        return manifest.to_text() == text
    except ValueError:  # a text that is not valid Unicode
        return False


def _depth(document: Any) -> int:
    """Return how many lists and tables are in each other, up to MOST_DEPTH + 1."""
    level = [document]
    for depth in range(MOST_DEPTH + 1):
        nested = [child for child in level if isinstance(child, (list, dict))]
        if not nested:
            return depth
        level = [inner for child in nested for inner in (child.values() if isinstance(child, dict) else child)]
    return MOST_DEPTH + 1


def _manifest(entry: Entry) -> Manifest:
    return Manifest(
        generation=entry.whole("generation", least=1),
        created=entry.text("created"),
        storage=entry.choice("storage", STORAGES),
        fields=tuple(read_field(field) for field in entry.entries("fields")),
        splits=tuple(Split.from_json(split) for split in entry.entries("splits")),
        bytes=entry.whole("bytes"),
        table=entry.text("table"),
        recipe=entry.anything("recipe"),
    )


def _check_sums(manifest: Manifest, problems: list[JsonProblem]) -> None:
    """Check that the parts of a manifest agree with each other."""
    names = [split.name for split in manifest.splits]
    if not names or len(set(names)) != len(names) or (ALL in names and len(names) > 1):
        problems.append(JsonProblem("splits", f"expected different names, '{ALL}' only alone, found {names}"))
    check_fields(manifest.fields, problems)
    for number, split in enumerate(manifest.splits):
        for name, count in (("rows", split.rows), ("shards", split.shards)):
            if count != sum(getattr(part, name) for part in split.parts):
                message = f"expected the sum over its parts, found {count}"
                problems.append(JsonProblem(f"splits.{number}.{name}", message))
        for where, wrong in part_problems(manifest.fields, split.parts):
            problems.append(JsonProblem(f"splits.{number}.parts{where}", wrong))
        misfits = misfit(split.statistics, manifest.fields)
        if misfits is not None:
            problems.append(JsonProblem(f"splits.{number}.statistics", misfits))
    if not manifest.shards:
        problems.append(JsonProblem("splits", "expected at least one shard"))
    if max(manifest.rows, manifest.shards) >= 2**63:
        problems.append(JsonProblem("splits", "have 2**63 or more rows or shards"))
    if not DIGEST.fullmatch(manifest.table):
        problems.append(JsonProblem("table", "expected 64 hex digits"))


def _is_sealed(document: dict[str, Any]) -> bool:
    """Return whether the checksum of a manifest of any version fits, so that its version is not a damaged byte."""
    rest = {key: value for key, value in document.items() if key != "checksum"}
    try:
        return document.get("checksum") == fingerprint(rest)
    except (ValueError, RecursionError):  # texts that are not Unicode, or lists in lists
        return False


def _error(path: object, problems: list[JsonProblem]) -> ManifestError:
    return ManifestError(f"{path}: " + "; ".join(str(problem) for problem in problems), problems)
