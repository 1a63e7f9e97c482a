"""Pictures with annotations as a source: a folder of pictures, and files from which the other fields are painted."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import compress, repeat
from typing import Any, ClassVar, NamedTuple

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from packer.annotations.annotation import AnnotatedPicture, check_categories
from packer.annotations.formats import annotation_format, is_embedded, picture_format
from packer.annotations.geojson import NAME as GEOJSON
from packer.annotations.paint import LOST_LATER, Brush, Canvas
from packer.annotations.picture_format import AnnotationFormat
from packer.annotations.reproject import library as pyproj
from packer.annotations.reproject import reproject_tools, reprojected
from packer.decoding.arrays import ARRAY, header_by
from packer.decoding.decode import header_of
from packer.decoding.file_types import read_header
from packer.decoding.header import Header
from packer.decoding.raw_file import naming
from packer.decoding.raw_pixels import upright
from packer.errors import BadPair, UsageError
from packer.recipe.row_ref import RowRef
from packer.recipe.source import Heads, LinesOf, Loaded, Source
from packer.sources.annotated.annotation_files import read_annotations, read_identified
from packer.sources.annotated.known_sizes import KnownSizes
from packer.sources.annotated.vector_files import is_vector, vector_tools
from packer.sources.ask_all import ask_all
from packer.sources.files.folder import FolderSource
from packer.sources.files.objects import ObjectsSource
from readers.contract.kinds import CLASSES, IDS
from readers.contract.receipt_facts import count_text
from readers.contract.tiles import Size

__all__ = ["AnnotatedSource", "Brush", "PaintedField"]

NOTES = "notes 3"
"""The rule of what notes count. It changes when they do, because the name of a shard depends on its notes."""
MANY_NUMBERS = 256
"""Numbers of categories from here on need 16 bits."""


class _Painted(NamedTuple):
    """The canvas of a file, what identifies the file, and the header of a picture with which the canvas is turned."""

    canvas: Canvas
    identity: str
    turned: Header | None


class PaintedField(NamedTuple):
    """A field that is painted: its number among the fields of a row, its kind, and of planes the category of each."""

    number: int
    kind: str
    planes: tuple[str, ...] = ()


class CountedObjects(NamedTuple):
    """The objects in all files that were read: for each category their number, and a file that has some."""

    objects: Mapping[str, tuple[int, str]]
    sizes: KnownSizes
    outlines: int
    """The objects that can be painted."""
    lost: Mapping[str, int]
    """The objects that cannot be painted, by the reason."""


@dataclass(frozen=True)
class AnnotatedSource(Source):
    """The files below a folder. The parts of painted fields are the paths of annotation files."""

    files: FolderSource
    format: str
    painted: tuple[PaintedField, ...]
    brush: Brush = field(default_factory=lambda: Brush({}))
    names: tuple[str, ...] = ()
    """The categories that a list of the format names."""
    sizes: KnownSizes = field(default_factory=KnownSizes, repr=False, compare=False)
    """The sizes in files that were read while the plan was made. Workers have none, because they read the files."""
    reprojects: bool = False
    """True if polygons are brought to the coordinate system of their picture."""
    kind: ClassVar[str] = "annotated"
    is_painted: ClassVar[bool] = True

    @cached_property
    def reader(self) -> AnnotationFormat:
        return annotation_format(self.format)

    @property
    def templates(self) -> tuple[str, ...]:
        return self.files.templates

    @property
    def tools(self) -> tuple[str, ...]:
        """The rule of the format, the rules of painting, and the list that gives numbers in the files their names."""
        rules = f"{self.reader.rule}, paint {self.brush.order}, crowds {self.brush.crowds}, {NOTES}"
        listed = blake3("\n".join(self.names).encode()).hexdigest()[:16]
        vectors = vector_tools() if any(map(is_vector, self.templates)) else ()
        reprojected = reproject_tools() if self.reprojects else ()
        painted = f"{rules}, categories {listed}" if self.names else rules
        return (*self.files.tools, *vectors, *reprojected, painted)

    def reprojected(self) -> AnnotatedSource:
        """Return the source with polygons in the coordinate system of their picture."""
        if self.format != GEOJSON:
            raise UsageError(
                f"--reproject: {self.format} has no coordinates on the ground; GeoJSON and files of GIS have"
            )
        pyproj()
        return replace(self, reprojects=True)

    def rows(self) -> Iterator[RowRef]:
        return self.files.rows()

    def expect(self, refs: Iterable[RowRef]) -> None:
        self.files.expect(refs)

    def heads(self, refs: Sequence[RowRef]) -> Iterator[Heads]:
        yield from ask_all(self._heads, refs)

    def states(self, refs: Sequence[RowRef]) -> NDArray[np.int64]:
        return self.files.states(refs)

    def identities(self, refs: Sequence[RowRef]) -> Iterable[tuple[str, ...] | None]:
        return self.files.identities(refs)

    def load(self, ref: RowRef) -> Loaded:
        """Read the files of a row, and paint the fields that are annotated."""
        loaded = self.files.load(self.files_of(ref))
        if loaded.bad is not None:
            return loaded
        data, identities, painted = list(loaded.data), list(loaded.identities), dict[str, _Painted]()
        try:
            with naming(ref.parts[0]):
                if is_embedded(ref.parts[0]):
                    data[0] = self.reader.picture_in(data[0])
                header = header_of(data[0]) if ref.parts[0] else None
            for target in self.painted:
                if part := ref.parts[target.number]:
                    if part not in painted:
                        painted[part] = self._paint(part, header, data[0])
                    identities[target.number] = painted[part].identity
            data = self._with_painted(ref, data, painted)
        except BadPair as bad:
            return Loaded.refused(bad, data[:1], identities)
        row = Loaded(tuple(data), tuple(identities), None, *_noted(tuple(painted.values())))
        return row._replace(at_stored=partial(self._at_stored, row, painted))

    def read(self, part: str) -> tuple[AnnotatedPicture, str]:
        """Return the annotations at a part of a row, and what identifies them."""
        data, identity = read_identified(self.files, part)
        with naming(part):
            picture = picture_format(self.format).read(data, self.names)
            check_categories({annotation.category for annotation in picture.annotations})
            return picture, identity

    def size_of(self, part: str) -> Size | None:
        """Return the size that the annotations give their picture."""
        size = self.sizes.of(part)
        if size is None:
            return self.read(part)[0].size
        return size if all(size) else None

    def count(self, refs: Iterable[RowRef]) -> CountedObjects:
        """Return how many objects each category has, and the sizes. Files that cannot be read have none of both."""
        objects: dict[str, tuple[int, str]] = {}
        lost = Counter[str]()
        parts = (part for ref in refs for part in {ref.parts[target.number] for target in self.painted} if part)

        def sizes() -> Iterator[tuple[str, Size | None]]:
            for part, facts in ask_all(self._read_or_none, parts):
                if facts is not None:
                    yield part, facts[0]
                    lost.update(facts[2])
                    for category, count in facts[1].items():
                        before, first = objects.get(category, (0, part))
                        objects[category] = before + count, first

        known_sizes = KnownSizes(sizes())
        return CountedObjects(objects, known_sizes, sum(count for count, _ in objects.values()), lost)

    def to_text(self) -> str:
        facts = json.loads(self.files.to_text())
        brush = {**vars(self.brush), "numbers": dict(self.brush.numbers), "elsewhere": sorted(self.brush.elsewhere)}
        more = {"format": self.format, "painted": self.painted, "brush": brush, "names": self.names}
        rule = {"reprojects": True} if self.reprojects else {}
        return json.dumps({**facts, "kind": self.kind, "of": facts["kind"], **more, **rule})

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> AnnotatedSource:
        of = ObjectsSource if facts["of"] == ObjectsSource.kind else FolderSource
        brush = Brush(**{**facts["brush"], "elsewhere": frozenset(facts["brush"]["elsewhere"])})
        painted = tuple(PaintedField(number, kind, tuple(planes)) for number, kind, planes in facts["painted"])
        source = cls(of.from_json(facts), facts["format"], painted, brush, tuple(facts["names"]))
        return replace(source, reprojects=facts.get("reprojects", False))

    def files_of(self, ref: RowRef) -> RowRef:
        """Return a row without its painted fields."""
        painted = {target.number for target in self.painted}
        return ref._replace(parts=tuple("" if i in painted else part for i, part in enumerate(ref.parts)))

    def _heads(self, ref: RowRef) -> Heads:
        files = self.files_of(ref)
        heads = self._embedded_heads(files) if is_embedded(ref.parts[0]) else self.files.heads_of(files)
        if isinstance(heads, str):
            return heads
        headers = dict(zip(compress(range(len(ref.parts)), files.parts), heads, strict=True))
        try:
            for part in {ref.parts[target.number] for target in self.painted} - {""}:
                size = self.size_of(part)
                with naming(part):
                    self._size(size, heads[0])
            for target in self.painted:
                headers[target.number] = self._header(target, heads[0].size)
        except BadPair as bad:
            return str(bad)
        return tuple(headers[number] for number, part in enumerate(ref.parts) if part)

    def _embedded_heads(self, ref: RowRef) -> Heads:
        """Return the heads of a row whose image is within a file of annotations."""
        image, *others = ref.parts
        heads = self.files.heads_of(ref._replace(parts=("", *others)))
        try:
            data = read_annotations(self.files, image)
            with naming(image):
                header = read_header(io.BytesIO(self.reader.picture_in(data)), self.files.max_pixels)
        except BadPair as bad:
            return str(bad)
        return heads if isinstance(heads, str) else (header, *heads)

    def _header(self, target: PaintedField, size: Size) -> Header:
        if target.kind == CLASSES:
            most = max((*self.brush.numbers.values(), self.brush.uncovered), default=0)
            return header_by(ARRAY, size, np.dtype(np.uint16 if most >= MANY_NUMBERS else np.uint8))
        if target.kind == IDS:
            return header_by(ARRAY, size, np.dtype(np.uint16))
        return header_by(ARRAY, (*size, len(target.planes)), np.dtype(np.bool_))

    def _with_painted(self, ref: RowRef, data: Sequence[Any], painted: Mapping[str, _Painted]) -> list[Any]:
        """Return the fields of a row, those that are painted as upright pixels."""
        fields = list(data)
        for target in self.painted:
            if part := ref.parts[target.number]:
                with naming(part):
                    fields[target.number] = _pixels(painted[part], target)
        return fields

    def _at_stored(self, row: Loaded, painted: Mapping[str, _Painted], lines_of: LinesOf) -> Loaded:
        """Return a row for the lines that are stored, and count the objects that none of their pixels shows."""
        lost = []
        for picture in painted.values():
            lines = lines_of(_upright(picture.canvas.top, picture).shape[:2])
            lost.append(picture.canvas.lost_at(_upright(picture.canvas.top, picture), lines.rows, lines.columns))
        notes, counts = _noted(tuple(painted.values()), lost)
        return row._replace(notes=notes, counts=counts, at_stored=None)

    def _paint(self, part: str, header: Header | None, image: bytes) -> _Painted:
        picture, identity = self.read(part)
        with naming(part):
            size = self._size(picture.size, header)
            if self.reprojects:
                picture = reprojected(picture, image)
            canvas = Canvas(self.reader.to_pixels(picture, image), size, self.brush)
        return _Painted(canvas, identity, header if header and self._is_stored(picture.size, header) else None)

    def _size(self, size: Size | None, header: Header | None) -> Size:
        """Return the size to paint at: of the upright picture, or of the stored one if coordinates are of it."""
        if header is None:
            if size is None:
                raise BadPair("does not say the size of its picture")
            return size
        if self._is_stored(size, header):
            return header.stored_height, header.stored_width
        if size not in (None, header.size):
            actual, expected = ("x".join(map(str, sides)) for sides in (size or (), header.size))
            raise BadPair(f"is of a picture of {actual}, and the picture is {expected} (height x width)")
        return header.size

    def _is_stored(self, size: Size | None, header: Header) -> bool:
        """Return whether coordinates are of the picture before EXIF turns it. If both are possible, the format says."""
        stored = header.stored_height, header.stored_width
        fits = [size in (None, possible) for possible in (header.size, stored)]
        return self.reader.is_of_stored if all(fits) else fits[1]

    def _read_or_none(self, part: str) -> tuple[str, tuple[Size | None, Counter[str], Mapping[str, int]] | None]:
        """Return the size, the objects of each category, and the lost ones; None if the file cannot be read."""
        try:
            picture, _ = self.read(part)
        except BadPair:
            return part, None
        return part, (picture.size, Counter(annotation.category for annotation in picture.annotations), picture.lost)


def _noted(painted: Sequence[_Painted], lost_later: Sequence[int] = ()) -> tuple[tuple[str, ...], Counter[str]]:
    """Return the notes and the counts of a row: what its fields do not show."""
    notes = [note for picture in painted for note in picture.canvas.notes()]
    if lost := sum(lost_later):
        notes.append(count_text(lost, LOST_LATER))
    counts = Counter[str]()
    for picture, later in zip(painted, lost_later or repeat(0), strict=False):
        counts.update(picture.canvas.counts(later))
    return tuple(dict.fromkeys(notes)), counts


def _pixels(painted: _Painted, field: PaintedField) -> NDArray[Any]:
    """Return the upright pixels of a field."""
    canvas = painted.canvas
    if field.kind == CLASSES:
        pixels: NDArray[Any] = canvas.label()
    else:
        pixels = canvas.ids() if field.kind == IDS else canvas.planes(field.planes).view(np.bool_)
    return _upright(pixels, painted)


def _upright(pixels: NDArray[Any], painted: _Painted) -> NDArray[Any]:
    return pixels if painted.turned is None else upright(pixels, painted.turned)
