"""Read the fields of a manifest, and check that they are possible, each and together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from readers.contract.classes import ClassTable
from readers.contract.fields import JPEG, RAW, VOLUME, ZSTD, Field
from readers.contract.json_entry import Entry, JsonProblem
from readers.contract.kinds import (
    CLASSES,
    INDEX,
    KINDS,
    MOST_BANDS,
    NAN,
    PICTURE,
    VALUES,
    fits,
    planes_of,
)

MOST_ROW_BYTES = 2**40
MOST_FIELDS = 32
NAME = re.compile(r"(?!(?:key|size|length|layout|labelled)$)[a-z][a-z0-9_]{0,31}(?<!_end)")
ENCODING = re.compile(r"[a-z][a-z0-9-]{0,31}")
WITHOUT_TILES = (RAW, ZSTD, JPEG)
LONGEST_BAND = 64


def read_field(entry: Entry) -> Field:
    """Take a field from its JSON. A field of an unknown encoding is refused only when it is read."""
    kind = entry.choice("kind", tuple(KINDS))
    form = entry.choice("form", tuple(KINDS[kind].dtypes))
    field = Field(
        name=entry.text("name"),
        kind=kind,
        form=form,
        dtype=entry.choice("dtype", KINDS[kind].dtypes[form]),
        shape=entry.shape("shape"),
        bands=entry.maybe("bands", entry.texts),
        classes=entry.maybe("classes", lambda key: ClassTable.from_json(entry.entry(key))),
        fill=entry.scalar("fill"),
        range=entry.maybe("range", entry.exact_numbers),
        optional=entry.truth("optional"),
        encoding=entry.text("encoding"),
        tile=entry.maybe("tile", lambda key: entry.wholes(key, least=1)),
        no_data=entry.has("no_data") and entry.truth("no_data"),
        times=entry.whole("times", least=2) if entry.has("times") else 1,
    )
    for checked in (_name, _table, _shape, _fill, _range, _encoding):
        for key, wrong in checked(field):
            entry.problem(key, wrong)
    entry.close()
    return field


def check_fields(fields: Sequence[Field], problems: list[JsonProblem]) -> None:
    """Add what is wrong with the fields of a pack together."""
    names = [field.name for field in fields]
    if not 1 <= len(set(names)) == len(names) <= MOST_FIELDS:
        problems.append(JsonProblem("fields", f"expected 1 to {MOST_FIELDS} names, each once, found {len(names)}"))
        return
    if fields[0].optional:
        problems.append(JsonProblem("fields.0.optional", "expected false: every row has the first field"))
    for number, field in enumerate(fields[1:], 1):
        if field.sides != fields[0].sides:
            message = f"{fields[0].name} {fields[0].shape} and {field.name} {field.shape} differ in size"
            problems.append(JsonProblem(f"fields.{number}.shape", message))


def _name(field: Field) -> Iterator[tuple[str, str]]:
    if not NAME.fullmatch(field.name):
        yield "name", f"expected up to 32 of a-z, 0-9 and _, and no name that has a meaning, found {field.name!r}"


def _table(field: Field) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with bands and classes: a picture has bands, others may have classes."""
    if (field.kind == PICTURE) != (field.bands is not None):
        yield "bands", "expected null" if field.bands is not None else "is missing; expected a name for each band"
    elif field.bands is not None and not (
        1 <= len(field.bands) <= MOST_BANDS and all(1 <= len(band) <= LONGEST_BAND for band in field.bands)
    ):
        yield "bands", f"expected 1 to {MOST_BANDS} names of 1 to {LONGEST_BAND} characters"
    if field.times > 1 and len(field.bands or ()) % field.times:
        yield "times", f"expected dates of equally many bands of a picture, found {field.times}"
    if field.times > 1 and field.kind != PICTURE:
        yield "times", "expected dates of pictures only"
    if KINDS[field.kind].has_classes != (field.classes is not None):
        yield "classes", "expected null" if field.classes is not None else "is missing; expected a table of classes"
    elif field.form == INDEX and field.classes is not None and field.dtype != field.classes.index_dtype:
        yield "dtype", f"expected {field.classes.index_dtype} for {len(field.classes)} classes"


def _shape(field: Field) -> Iterator[tuple[str, str]]:
    parts = field.bands if field.kind == PICTURE else field.classes
    planes = planes_of(field.form, len(parts or ()))
    dimensions = len(planes) + 2
    shape = list(field.shape)
    if len(shape) != dimensions and field.sides != VOLUME:
        yield "shape", f"expected {dimensions} numbers, or a third side of null in a volume, found {shape}"
    elif field.native and (field.shape != (*field.planes, *field.sides) or set(field.sides) != {None}):
        yield "shape", f"expected null for height and width, both or neither, found {shape}"
    elif parts is not None and field.planes != planes:
        noun = "bands" if field.kind == PICTURE else "classes"
        yield "shape", f"{field.numbers} planes, {len(parts)} {noun}"
    elif (least := field.row_bytes_at(*(field.size or (1,)))) >= MOST_ROW_BYTES:
        yield "shape", f"a row of {least} bytes is over the limit of 1 TiB"


def _fill(field: Field) -> Iterator[tuple[str, str]]:
    if field.no_data and field.kind != PICTURE:
        yield "no_data", "expected true for pictures only"
    if field.kind in (VALUES, PICTURE):
        may_be_nan = field.dtype[1] == "f" and (field.kind == VALUES or field.no_data)
        if not (field.fill == NAN and may_be_nan) and not fits(field.fill, field.dtype):
            nan = ", or 'nan'" if may_be_nan else ""
            yield "fill", f"expected a number of {field.dtype}{nan}, found {field.fill!r}"
        return
    expected = 0
    if field.kind == CLASSES and field.form == INDEX and field.classes is not None:
        expected = field.classes.ignore_index
    if field.fill != expected or type(field.fill) is not int:
        yield "fill", f"expected {expected}, found {field.fill!r}"


def _range(field: Field) -> Iterator[tuple[str, str]]:
    limits = field.range
    if field.kind != PICTURE:
        if limits is not None:
            yield "range", "expected null"
    elif field.dtype == "|u1" and limits != (0, 255):
        yield "range", "expected [0, 255]"
    elif limits is not None and (len(limits) != 2 or limits[0] >= limits[1]):
        yield "range", f"expected two numbers, the lower one first, found {list(limits)}"


def _encoding(field: Field) -> Iterator[tuple[str, str]]:
    if not ENCODING.fullmatch(field.encoding):
        yield "encoding", f"expected the name of an encoding, found {field.encoding!r}"
    if field.is_jpeg and (field.kind, field.dtype, field.numbers in (1, 3)) != (PICTURE, "|u1", True):
        yield "encoding", f"expected a picture of |u1 with 1 or 3 bands for {field.encoding}"
    if field.is_jpeg and field.no_data:
        yield "encoding", f"expected no {field.encoding} for pictures with no_data"
    if field.is_jpeg and field.is_volume:
        yield "encoding", f"expected no {field.encoding} for volumes"
    if field.encoding in WITHOUT_TILES and field.tile is not None:
        yield "tile", "expected null"
    elif field.is_tiled if field.tile is None else len(field.tile) != len(field.sides):
        yield "tile", "expected a number for each side of a row, such as the height and the width of a tile"
