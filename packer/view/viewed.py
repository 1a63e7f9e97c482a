"""`Viewed`: a pack with everything that the page asks for: rows, facts, pictures and remarks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.data_checks.findings import KINDS
from packer.errors import UsageError, first_of
from packer.packs.inspect_row import inspect_row
from packer.packs.raw_rows import RawRows
from packer.packs.so_far import open_so_far
from packer.publish.remarks import load_remarks
from packer.view.find_rows import FindRows, Query
from packer.view.layers import Layers
from packer.view.row_index import MOST_CLASSES, RowIndex
from packer.view.scores import read_scores, rows_named
from readers.contract.errors import ReadError
from readers.contract.fields import READABLE, Field
from readers.contract.palette import Palette, apart, hex_of
from readers.contract.place import Place
from readers.contract.plain_text import one_line
from readers.contract.slices import Cut, picture_in
from readers.find_key import rows_with_key
from readers.pack import Pack
from readers.pictures.draw import OBJECTS, ramp

MOST_ROWS = 200
"""The most rows that the page asks for at once."""
MOST_LINES = 200
NOTE = "note"
FILE, AGAIN = "file", "again"
"""Pixels from the raw files: in their own size, and as they would be stored now."""


@dataclass(frozen=True)
class Settings:
    """The pack to view, another generation of it to compare, and a file of scores."""

    out: Path
    against: int | None = None
    scores: Path | None = None


class Viewed:
    """A pack as the page sees it. Rows have numbers from 0 on; names are made harmless before they leave."""

    def __init__(self, settings: Settings) -> None:
        self.pack = _opened(settings.out, None)
        self.layers = Layers(self.pack)
        self.against = None if settings.against is None else Layers(_opened(settings.out, settings.against))
        scores = None if settings.scores is None else read_scores(self.pack, settings.scores)
        self.scores = scores
        self.index = RowIndex(self.pack)
        self.remarks = load_remarks(self.pack.root, self.pack.manifest)
        self.raw = RawRows(self.pack)
        self.find = FindRows(self.pack, self.index, self._found, scores)
        self.index.start()

    def facts(self) -> dict[str, Any]:
        """Return what the page needs to know once."""
        manifest, over = self.pack.manifest, self.layers.pictures.over
        base = self.layers.pictures.base
        return {
            "name": one_line(self.pack.root.resolve().name),
            "digest": self.layers.digest,
            "generation": manifest.generation,
            "created": one_line(manifest.created),
            "rows": manifest.rows,
            "splits": [{"name": split.name, "rows": split.rows} for split in manifest.splits],
            "fields": [_field(field) for field in self.layers.fields.values()],
            "picture": base.name if base else None,
            "label": over.name if over else None,
            "counted": self.index.label.name if self.index.label else None,
            "most_classes": MOST_CLASSES,
            "objects": [hex_of(colour) for colour in map(tuple, apart(OBJECTS).tolist())],
            "ramp": [hex_of(colour) for colour in map(tuple, ramp().tolist())],
            "findings": {kind: [KINDS.get(kind, kind), len(rows)] for kind, rows in self._found.items()},
            "scores": self.scores is not None,
            "score_range": None if self.scores is None else _ends(self.scores),
            "against": self.against
            and {"digest": self.against.digest, "generation": self.against.pack.manifest.generation},
            "remarks": self._remarks(),
        }

    def counting(self) -> dict[str, Any]:
        """Return how many rows are counted, and why no more will be."""
        return {"counted": self.index.done, "rows": self.pack.manifest.rows, "problem": one_line(self.index.problem)}

    def query(self, asked: Mapping[str, str]) -> Query:
        """Return the query of an address."""
        return Query.of(asked, self.index.classes, [split.name for split in self.pack.manifest.splits])

    def rows(self, query: Query, start: int, count: int) -> dict[str, Any]:
        """Return a range of the rows of a query, each with its number in the pack, split, key and sorted number."""
        rows = self.find.rows(query)
        numbers = self.find.numbers(query)
        some = rows[start : start + min(count, MOST_ROWS)].tolist()
        return {"total": len(rows), "from": start, "rows": [self._entry(row, numbers) for row in some]}

    def row(self, row: int) -> dict[str, Any]:
        """Return everything that is known of a row."""
        facts = inspect_row(self.pack, row)
        other = None
        if self.against is not None:
            rows = rows_with_key(self.against.pack, facts.key, _rows_of(self.against.pack, facts.split))
            other = rows[0] if rows else None
        return {
            "row": row,
            "key": one_line(facts.key),
            "split": facts.split,
            "size": facts.size,
            "source_size": facts.source_size,
            "place": None if facts.place is None else _place(facts.place),
            "placement": [one_line(words) for words in facts.placement],
            "note": one_line(facts.note),
            "shard": facts.shard,
            "row_of_shard": facts.row_of_shard,
            "score": _finite(self.scores[row]) if self.scores is not None else None,
            "against": other,
            "fields": [
                {
                    "name": field.field.name,
                    "shape": field.shape,
                    "crc32": f"{field.crc32:08x}",
                    "whole": field.whole,
                    "sources": [one_line(source) for source in field.sources],
                    "classes": [[one_line(name), pixels] for name, pixels in field.classes],
                }
                for field in facts.fields
            ],
        }

    def raw_facts(self, row: int) -> dict[str, Any]:
        """Return what differs between a row and its present raw files, which are read for it."""
        raw = self.raw.row(row, again=True)
        return {
            "problem": one_line(raw.problem),
            "notes": [one_line(note) for note in raw.notes],
            "own_size": bool(raw.as_it_is),
            "differences": {
                name: [difference.pixels, difference.largest] for name, difference in raw.differences.items()
            },
        }

    def raw_pixels(self, row: int, name: str, source: str, cut: Cut | None) -> tuple[Field, NDArray[Any]]:
        """Return a field of a row from its raw files: unchanged from the FILE, or as it would be stored AGAIN."""
        raw = self.raw.row(row)
        pixels = raw.as_it_is if source == FILE else raw.again
        if name not in pixels:
            raise UsageError(one_line(raw.problem) or "the raw files do not have this field, or it is too large")
        field, numbers = pixels[name]
        return field, picture_in(field, numbers, _inside(cut, numbers.shape[len(field.planes) :]))

    def _entry(self, row: int, numbers: Any) -> list[Any]:
        shard, inside = self.pack.table.locate(row)
        opened = self.pack.shard(shard)
        number = None if numbers is None else _finite(numbers[row])
        return [row, self.pack.split_of(shard).name, one_line(opened.key(inside)), *opened.size(inside)[-2:], number]

    @cached_property
    def _found(self) -> dict[str, list[int]]:
        """The rows of each kind of finding, and those with a note."""
        rows_of_kind: dict[str, list[int]] = {}
        if self.remarks is not None:
            for kind, names, _ in self.remarks.findings:
                rows_of_kind.setdefault(kind, []).extend(row for name in names for row in rows_named(self.pack, name))
            for split, key, _ in self.remarks.notes:
                rows_of_kind.setdefault(NOTE, []).extend(rows_with_key(self.pack, key, _rows_of(self.pack, split)))
        return {kind: sorted({*rows}) for kind, rows in rows_of_kind.items() if rows}

    def _remarks(self) -> dict[str, Any] | None:
        remarks = self.remarks
        if remarks is None:
            return None
        findings = [
            [one_line(KINDS.get(kind, kind)), [one_line(name) for name in first_of(names, 4)], one_line(words)]
            for kind, names, words in remarks.findings[:MOST_LINES]
        ]
        rejects = [[one_line(f"{split}/{key}"), one_line(words)] for split, key, words in remarks.rejects[:MOST_LINES]]
        return {
            "rejects": rejects,
            "all_rejects": remarks.all_rejects,
            "findings": findings,
            "all_findings": remarks.all_findings,
        }


def _opened(out: Path, generation: int | None) -> Pack:
    pack = open_so_far(out) if generation is None else Pack.open(out, generation)
    pack.select([field.name for field in pack.manifest.fields if field.encoding in READABLE])
    return pack


def _rows_of(pack: Pack, split: str) -> range:
    try:
        return pack.rows_of(split)
    except ReadError:  # another generation may have other splits
        return range(0)


def _ends(scores: NDArray[np.float32]) -> list[float] | None:
    """Return the smallest and the largest score, if any row has one."""
    finite = scores[np.isfinite(scores)]
    return [float(finite.min()), float(finite.max())] if len(finite) else None


def _inside(cut: Cut | None, sides: tuple[int, ...]) -> Cut | None:
    """Return a plane of a volume that may be smaller than the stored one."""
    return cut and Cut(cut.side, min(cut.at, sides[cut.side] - 1))


def _place(place: Place) -> dict[str, Any]:
    """Return where the pixels of a row are: a line of numbers for each coordinate, as in `Place`."""
    return {
        "kind": place.kind,
        "crs": one_line(place.crs),
        "spacing": place.spacing,
        "matrix": place.matrix.tolist(),
    }


def _finite(number: Any) -> float | None:
    return float(number) if np.isfinite(number) else None


def _field(field: Field) -> dict[str, Any]:
    classes = None
    if field.classes is not None:
        palette = field.classes.palette
        classes = {
            "names": [one_line(name) for name in field.classes.names],
            "ignore": field.classes.ignore_index,
            "colours": _colours(palette),
            "blind": _colours(palette.colour_blind),
        }
    return {"name": field.name, "kind": field.kind, "dtype": field.dtype, "bands": field.bands, "classes": classes}


def _colours(palette: Palette) -> list[str]:
    """Return the colours of the classes, and then the colour of ignored pixels."""
    return [*palette.hex, hex_of(palette.ignored)]
