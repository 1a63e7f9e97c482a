"""`PlanFacts`: `plan.json`, what a plan folder says of itself besides its rows and shards."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from packer.recipe.recipe import Recipe
from readers.contract.errors import DamagedError
from readers.contract.json_entry import Entry, JsonProblem, loads
from readers.contract.manifest import DIGEST, NAME
from readers.contract.tiles import Size

FORMAT, VERSION = "segpack plan", 3
MOST_ROWS_FILES = 1 << 20
"""The most files of rows: at 256 MB each these are 268 TB."""


@dataclass(frozen=True)
class PlanFacts:
    """Everything about a plan that does not grow with its rows."""

    package: str
    """The version of this package that planned. The versions of decoders and writers are in the recipe."""
    recipe: Recipe
    source: str
    """The text from which sources/reopen.py opens the source."""
    raw: str
    """The folder or file of the source, or nothing. A worker may have it under another path."""
    settings: str
    """The options of the build, as a configuration file."""
    splits: Mapping[str, int]
    """The rows of each split of the source."""
    shards: int
    pieces: int
    """The rows of the pack if none is rejected: rows of the source, or their tiles."""
    rows_files: tuple[int, ...]
    """The bytes of each file of rows."""
    records: str
    """The SHA-256 of the records of all shards."""
    states: str
    """The SHA-256 of the states of all rows that are to be built: files that changed make another plan."""
    layout: str = ""
    missing: tuple[str, ...] = ()
    """Files without a partner that are left out."""
    sizes: Counter[Size] | None = None
    """The number of pictures of each size."""
    own_classes: bool = False
    """True if the source has the classes of the recipe itself."""

    @property
    def rows(self) -> int:
        """The number of rows of the source."""
        return sum(self.splits.values())

    def to_text(self) -> str:
        document: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "package": self.package,
            "recipe": self.recipe.to_json(),
            "source": self.source,
            "raw": self.raw,
            "settings": self.settings,
            "splits": [{"name": name, "rows": rows} for name, rows in self.splits.items()],
            "shards": self.shards,
            "pieces": self.pieces,
            "rows_files": self.rows_files,
            "records": self.records,
            "states": self.states,
            "layout": self.layout,
            "missing": self.missing,
            "sizes": [(*size, count) for size, count in sorted((self.sizes or {}).items())],
            "own_classes": self.own_classes,
        }
        return json.dumps(document, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_text(cls, text: str, path: object) -> PlanFacts:
        """Read plan.json, or raise a DamagedError that names every problem."""
        problems: list[JsonProblem] = []
        try:
            facts = cls._read(Entry(loads(text), "", problems))
        except (ValueError, RecursionError) as error:
            raise DamagedError(f"{path}: is not a valid plan ({error})") from error
        if problems:
            raise DamagedError(f"{path}: " + "; ".join(str(problem) for problem in problems))
        return facts

    @classmethod
    def _read(cls, entry: Entry) -> PlanFacts:
        entry.choice("format", (FORMAT,))
        if entry.whole("version") != VERSION:
            entry.problem("version", f"expected {VERSION}; plan with this release of segpack")
        recipe = Recipe.from_json(entry.entry("recipe"))
        if not recipe.rules or (recipe.geometry.size is None) != (recipe.geometry.fit == "native"):
            entry.problem("recipe", "expected fields, and a size unless the fit is native")
        if recipe.geometry.overlap >= min(recipe.geometry.size or (1,)):
            entry.problem("recipe.overlap", "expected less than the size of a tile")
        facts = cls(
            package=entry.text("package"),
            recipe=recipe,
            source=entry.text("source"),
            raw=entry.text("raw"),
            settings=entry.text("settings"),
            splits=_splits(entry),
            shards=entry.whole("shards", least=1),
            pieces=entry.whole("pieces", least=1),
            rows_files=entry.wholes("rows_files", least=1),
            records=entry.text("records"),
            states=entry.text("states"),
            layout=entry.text("layout"),
            missing=entry.texts("missing"),
            sizes=_sizes(entry),
            own_classes=entry.truth("own_classes"),
        )
        entry.close()
        for name, digest in (("records", facts.records), ("states", facts.states)):
            if not DIGEST.fullmatch(digest):
                entry.problem(name, "expected 64 hex digits")
        if not 0 < len(facts.rows_files) <= MOST_ROWS_FILES:
            entry.problem("rows_files", f"expected 1 to {MOST_ROWS_FILES} files")
        if not isinstance(json.loads(facts.source), dict):
            entry.problem("source", "expected the text of a source")
        return facts


def _splits(entry: Entry) -> dict[str, int]:
    splits: dict[str, int] = {}
    for split in entry.entries("splits"):
        name = split.text("name")
        if not NAME.fullmatch(name) or name in splits:
            split.problem("name", f"expected the name of another split, found {name[:80]!r}")
        splits[name] = split.whole("rows", least=1)
        split.close()
    return splits


def _sizes(entry: Entry) -> Counter[Size]:
    sizes = Counter[Size]()
    for number, values in enumerate(entry.lists("sizes")):
        if len(values) not in (3, 4) or any(type(value) is not int or value < 1 for value in values):
            entry.problem(f"sizes.{number}", "expected the sides and the number of pictures")
            break
        sizes[tuple(values[:-1])] += values[-1]
    return sizes
