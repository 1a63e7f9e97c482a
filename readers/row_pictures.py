"""`RowPictures`: rows of a pack as pictures. It needs no PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from readers.contract.errors import DamagedError, RequestError
from readers.contract.fields import IMAGE, LABEL, READABLE, Field
from readers.contract.kinds import CLASSES, KINDS, PICTURE, VALUES
from readers.contract.manifest import ALL
from readers.contract.palette import Palette
from readers.contract.statistics import ClassStatistics
from readers.contract.tiles import size_text
from readers.formats.large_rows import is_large, reduced, strips
from readers.formats.shard import Shard
from readers.pack import Pack
from readers.pictures.count import class_pixels
from readers.pictures.draw import Drawing, Look, Picture, draw
from readers.pictures.legend import Legend, LegendLine, legend_of, percent
from readers.pictures.overlay import overlay
from readers.pictures.shrink import SAMPLES, ShownSize, fitted, proportioned
from readers.pictures.window import ShownPart, has_window

if TYPE_CHECKING:
    from PIL.Image import Image

OPACITY = 0.5
GROUND = 240
"""The gray below a label of rows without a picture."""


@dataclass(frozen=True)
class Style:
    """The field that is laid over the picture, its opacity, some of its classes, outlines, a window of numbers for
    pictures and values, and whether colours are those for colour-blind people."""

    field: str | None = None
    opacity: float | None = None
    classes: Sequence[str | int] | None = None
    outlines: bool = False
    window: tuple[float, float] | None = None
    colour_blind: bool = False


class Drawn(NamedTuple):
    """A row: its picture and its label over it (one may be missing), and a note."""

    picture: Picture | None
    labelled: Picture | None
    note: str


class RowPictures:
    """Draws rows of a pack in one style: the field `image`, or the first picture, with the label or another field."""

    def __init__(self, pack: Pack, style: Style) -> None:
        fields = {field.name: field for field in pack.fields if field.encoding in READABLE}
        pictures = [field for field in fields.values() if field.kind == PICTURE]
        self.pack = pack
        self._style = style
        self.base = next((field for field in pictures if field.name == IMAGE), next(iter(pictures), None))
        self.over = _label(list(fields.values()))
        if style.field is not None:
            if style.field not in fields:
                raise RequestError(f"there is no field {style.field!r}, only {', '.join(map(repr, fields))}")
            asked = fields[style.field]
            self.base, self.over = (asked, None) if asked.kind == PICTURE else (self.base, asked)
        if self.base is None and self.over is None:
            raise RequestError("no field that is read can be drawn")
        if not 0 <= self.opacity <= 1:
            raise RequestError(f"opacity={style.opacity!r}: expected a number from 0 to 1")
        self._only = numbers_of(self.over, style.classes) if style.classes else None

    @property
    def opacity(self) -> float:
        """The opacity of the label: by default a half, and 1 for measured values."""
        if self._style.opacity is not None:
            return self._style.opacity
        return 1.0 if self.over is not None and self.over.kind == VALUES else OPACITY

    @property
    def fields(self) -> list[Field]:
        """The fields that are drawn, the upper one first."""
        return [field for field in (self.over, self.base) if field is not None]

    @property
    def is_native(self) -> bool:
        """True if each row has a size of its own."""
        return self.fields[0].native

    @property
    def text(self) -> str:
        """The fields that are drawn, and how."""
        return self._text(self.fields)

    def text_at(self, row: int) -> str:
        """Return the fields of a row that are drawn, and how: it may have no label."""
        opened = self.pack.shard(self.pack.table.locate(row)[0])
        lacking = [f", no {field.name}" for field in self.fields if not opened.has(field.name)]
        return self._text([field for field in self.fields if opened.has(field.name)]) + "".join(lacking)

    def _text(self, fields: Sequence[Field]) -> str:
        names = " over ".join(field.name for field in fields)
        opacity = f", opacity {self.opacity:g}" if len(fields) == 2 else ""
        stretched = [field for field in fields if KINDS[field.kind].has_mean and not has_window(field)]
        numbers = " · from the 1st to the 99th percentile of each row" if stretched and not self._style.window else ""
        return f"{names}{opacity}{numbers}"

    @cached_property
    def palette(self) -> Palette | None:
        """The colours of the classes, if the label has some."""
        if self.over is None or self.over.classes is None:
            return None
        palette = self.over.classes.palette
        return palette.colour_blind if self._style.colour_blind else palette

    def size(self, row: int) -> ShownSize:
        """Return the height and width of the picture of a row, in the proportions of the world if they are known."""
        shard, inside = self.pack.table.locate(row)
        height, width = self.pack.shard(shard).size(inside)[-2:]
        try:
            place = self.pack.place(row)
        except DamagedError:  # of a receipt, which `packer verify` names; the pixels can be drawn
            place = None
        return (height, width) if place is None else proportioned((height, width), place.spacing[-2:])

    def size_text(self, row: int) -> str:
        """Return the sides of a row in words, also of a whole volume."""
        shard, inside = self.pack.table.locate(row)
        return size_text(self.pack.shard(shard).size(inside))

    def key(self, row: int) -> str:
        """Return the key of a row."""
        shard, inside = self.pack.table.locate(row)
        return self.pack.shard(shard).key(inside)

    def draw(self, row: int, size: ShownSize) -> Drawn:
        """Return a row at this size."""
        base, over = self._drawn(self.base, row, size), self._drawn(self.over, row, size)
        notes = [drawing.note for drawing in (base, over) if drawing is not None and drawing.note]
        labelled = None
        if over is not None:
            ground = np.full((*size, 3), GROUND, np.uint8) if base is None else base.rgb
            labelled = overlay(ground, over, 1.0 if base is None else self.opacity, self._style.outlines)
        elif self.over is not None:
            notes.append(f"no {self.over.name}")
        return Drawn(None if base is None else base.rgb, labelled, " · ".join(notes))

    def one(self, row: int, longest: int | None = None) -> Picture:
        """Return a row with its label over it, at its own size or with its longest side of this number of pixels."""
        size = self.size(row)
        if longest is not None:
            if longest < 1:
                raise RequestError(f"size={longest!r}: expected the pixels of the longest side")
            size = fitted(size, (longest, longest))
        return self.at(row, size)

    def at(self, row: int, size: ShownSize) -> Picture:
        """Return a row with its label over it at this height and width."""
        drawn = self.draw(row, size)
        picture = drawn.labelled if drawn.labelled is not None else drawn.picture
        return np.full((*size, 3), GROUND, np.uint8) if picture is None else picture

    def legend(self, splits: Sequence[str]) -> Legend:
        """Return the legend of the label, with the shares of the classes in these splits."""
        if self.over is None or self.palette is None or self.over.classes is None:
            return Legend(is_ramp=self.over is not None and self.over.kind == VALUES)
        statistics, names = self.pack.measured().statistics_of(*splits)[self.over.name], self.over.classes.names
        assert isinstance(statistics, ClassStatistics)
        if self.over.kind == CLASSES:
            whole = max(1, statistics.count)
            return legend_of(
                names, self.palette, [count / whole for count in statistics.classes], statistics.ignored / whole
            )
        parts = [part for entry in self.pack.manifest.splits if {entry.name, ALL} & {*splits} for part in entry.parts]
        rows = max(1, sum(part.rows for part in parts if self.over.name in part.fields))
        legend = legend_of(names, self.palette, [count / rows for count in statistics.rows], None)
        return replace(legend, note=f"the share of the rows in which each occurs{legend.note and f'; {legend.note}'}")

    def classes(self, row: int) -> list[LegendLine]:
        """Return the classes of a row with their share of its pixels, the most frequent first."""
        shard, inside = self.pack.table.locate(row)
        opened = self.pack.shard(shard)
        if self.over is None or self.over.classes is None or self.palette is None or not opened.has(self.over.name):
            return []
        counts, pixels = _class_pixels(opened, self.over, inside), prod(opened.size(inside))
        counted = sorted(((count, number) for number, count in enumerate(counts) if count), key=lambda pair: -pair[0])
        names = self.over.classes.names
        lines = [LegendLine(names[number], self.palette[number], percent(count / pixels)) for count, number in counted]
        ignored = pixels - sum(counts) if self.over.kind == CLASSES else 0
        if ignored > 0:
            lines.append(LegendLine("ignored", self.palette.ignored, percent(ignored / pixels), True))
        return lines

    def _drawn(self, field: Field | None, row: int, size: ShownSize) -> Drawing | None:
        shard, inside = self.pack.table.locate(row)
        opened = self.pack.shard(shard)
        if field is None or not opened.has(field.name):
            return None
        label = field is self.over
        window = self._style.window if not label or field.kind == VALUES else None
        look = Look(size, self.palette if label else None, None if window is None else ShownPart(*window))
        look = replace(look, only=self._only if label else None)
        return draw(field, reduced(opened, field, inside, (SAMPLES * size[0], SAMPLES * size[1])), look)


def _class_pixels(shard: Shard, field: Field, row: int) -> list[int]:
    if not is_large(shard, field, row):
        return class_pixels(field, shard.pixels(field, row))
    counts = [class_pixels(field, lines) for _, lines in strips(shard, field, row)]
    return [sum(plane_counts) for plane_counts in zip(*counts, strict=True)]


def as_image(picture: Picture) -> Image:
    """Return a picture as an image of Pillow."""
    from PIL.Image import fromarray

    return fromarray(picture)


def numbers_of(field: Field | None, classes: Sequence[str | int]) -> frozenset[int]:
    """Return the numbers of classes that are given by name or number."""
    if field is None or field.classes is None:
        raise RequestError(f"classes={list(classes)!r}, but nothing with classes is laid over the picture")
    if isinstance(classes, str):
        raise RequestError(f"classes={classes!r}: expected a list of names or numbers, such as [{classes!r}]")
    numbers = range(len(field.classes))
    number_of: dict[str | int, int] = {str(number): number for number in numbers}
    number_of |= {number: number for number in numbers}
    number_of |= {name: number for number, name in enumerate(field.classes.names)}
    for name in classes:
        if name not in number_of:
            raise RequestError(f"classes={list(classes)!r}: {name!r} is neither the name nor the number of a class")
    return frozenset(number_of[name] for name in classes)


def _label(fields: Sequence[Field]) -> Field | None:
    """Return the field `label`, else the first with classes, else the first that is not a picture."""
    others = [field for field in fields if field.kind != PICTURE]
    named = [field for field in others if field.name == LABEL]
    return next(iter([*named, *(field for field in others if field.classes is not None), *others]), None)
