"""Headers of the files of a row: what they say of its place, and of pixels without data."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO

from packer.decoding.decode import header_of
from packer.decoding.file_types import JPEG_2000, read_header
from packer.decoding.grid import check_place, other_place
from packer.decoding.header import BandFiles, Header
from packer.decoding.raw_file import SEPARATOR, naming
from packer.decoding.tiff.picture import SIGNATURES as TIFF
from packer.pixels.number_rules import ValueRules
from packer.recipe.field_rule import FieldRule
from packer.recipe.source import Given, Loaded, PackedPixels, Slices
from packer.shards.row_places import place_of
from readers.contract.fields import LABEL
from readers.contract.kinds import PICTURE
from readers.contract.place import Place
from readers.contract.receipt_facts import NO_DATA

_MAPS = (*TIFF, *JPEG_2000)
"""The first bytes of files that may have a place."""
ELSEWHERE = "rows of fields at different places, by their headers"
FileHeaders = Mapping[str, Header]
"""The headers of the files of a field by their paths."""


class HeaderJudge:
    """Judges the headers of a row by the rules of its fields, and by what a recipe does with other places."""

    def __init__(self, rules: Sequence[FieldRule], place: str) -> None:
        self._rules, self._place = rules, place

    def judged(self, loaded: Loaded, headers: Sequence[FileHeaders]) -> Loaded:
        """Return a row with counts of what its headers say. Raise BadPair if a field is at another place than the
        first, and places count."""
        elsewhere = loaded.elsewhere or next(filter(None, self._elsewhere(headers)), "")
        check_place(elsewhere, self._place)
        counts = {**self._no_data(headers), **({ELSEWHERE: 1} if elsewhere else {})}
        return loaded._replace(counts={**(loaded.counts or {}), **counts}) if counts else loaded

    def _elsewhere(self, headers: Sequence[FileHeaders]) -> Iterator[str]:
        """Yield for each file where it is, in words, if it is at another place than the first."""
        image, first = next(iter(headers[0].items()), ("", None))
        for rule, headers_of_field in zip(self._rules, headers, strict=True):
            for path, header in headers_of_field.items():
                noun = LABEL if rule.name == LABEL else "file"
                yield header.elsewhere and f"{path}: {header.elsewhere}"
                yield other_place(image, None if first is None else first.grid, path, header.grid, noun)

    def _no_data(self, headers: Sequence[FileHeaders]) -> dict[str, int]:
        """Count the files that name a value for no data, unless the options of their field say what becomes of it."""
        return {
            NO_DATA.format(rule.name, value): 1
            for rule, headers_of_field in zip(self._rules, headers, strict=True)
            for value in {header.no_data for header in headers_of_field.values()}
            if value and not _is_handled(rule, value)
        }


def headers_of(part: str, data: Given) -> dict[str, Header]:
    """Return the headers of the files of a field by their paths that may name a place, or a value for no data."""
    if isinstance(data, BandFiles):
        with naming(part):
            return {first_file(part): header_of(data, sys.maxsize)}
    files = data if isinstance(data, tuple) and not isinstance(data, (PackedPixels, Slices)) else (data,)
    named_files = zip(part.split(SEPARATOR), files, strict=False)
    maps = {path: file for path, file in named_files if isinstance(file, bytes) and file.startswith(_MAPS)}
    headers = dict[str, Header]()
    for path, file in maps.items():
        with naming(path):
            headers[path] = read_header(BytesIO(file), sys.maxsize)
    return headers


def headers_of_strips(part: str, lines: Given) -> dict[str, Header]:
    """Return the headers of the files of a field by their paths; of bands in several files the first has all."""
    if isinstance(lines, BandFiles):
        return {first_file(part): header_of(lines)}
    from packer.shards.line_window import strips_of  # most pictures are decoded at once

    return {path: strip.header for path, strip in zip(part.split(SEPARATOR), strips_of(lines), strict=True) if strip}


def first_file(part: str) -> str:
    """Return the first file of a field."""
    return next(filter(None, part.split(SEPARATOR)))


def place_in(loaded: Loaded, headers: Sequence[FileHeaders]) -> Place | None:
    """Return the place of a picture: from its source, or from the header of the first field's file."""
    if loaded.place is not None:
        return loaded.place
    return next(map(place_of, headers[0].values()), None)


def _is_handled(rule: FieldRule, value: str) -> bool:
    """Return whether pixels of this value are left out: without a value, without data, or of an ignored class."""
    if isinstance(rule.read, ValueRules):
        return True
    if rule.field.kind == PICTURE:
        return rule.field.no_data
    ignored = () if rule.field.classes is None else rule.field.classes.ignored_values
    return value in map(str, ignored)
