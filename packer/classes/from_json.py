"""Class tables as the JSON that data sets and tools come with: Mapillary, COCO, datumaro, and plain mappings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packer.classes.documents import kind
from packer.classes.from_text import COLUMNS, NO_TRAIN_ID, names_table
from packer.classes.from_toml import CLASS, read_tables
from packer.classes.merge import Row, coloured, join
from packer.classes.values import MOST_VALUE, parse_colour, parse_values
from packer.errors import InputError
from readers.contract.classes import ClassTable

_LISTS = ("labels", "classes", "categories")
_NUMBER = re.compile(r"-?[0-9]{1,5}")


def read_foreign(path: Path, document: object) -> ClassTable:
    """The class table of a JSON document, by the shape that it has."""
    if isinstance(document, dict):
        if CLASS in document and isinstance(document[CLASS], list):
            return read_tables(path, document)
        for key in _LISTS:
            if isinstance(document.get(key), list):
                return _listed(path, f"{key}.", document[key])
        if isinstance(document.get("label_map"), dict):
            return _numbered(path, document["label_map"], document.get("segmentation_colors"))
        if document and all(_NUMBER.fullmatch(key) for key in document):
            return _numbered(path, document, None)
        if document:
            return _named(path, document)
    elif isinstance(document, list) and document:
        return _listed(path, "", document)
    raise InputError(
        f'{path}: is no class table; expected {{"0": "sky", "1": "road"}}, {{"sky": [70, 130, 180]}}, '
        '["sky", "road"], or labels such as {"name": "sky", "id": 0, "color": [70, 130, 180]}'
    )


def _listed(path: Path, below: str, items: list[Any]) -> ClassTable:
    """Names or objects; without a value of its own, what stands at place 7 is the value 7."""
    if all(isinstance(item, str) for item in items):
        return names_table(path, [(f"{path}: {below}{number}", item) for number, item in enumerate(items)])
    problems: list[str] = []
    rows = [
        row
        for number, item in enumerate(items)
        if (row := _object(f"{path}: {below}{number}", number, item, problems)) is not None
    ]
    return join(path, rows, problems, shared_colours=True)


def _object(place: str, number: int, item: object, problems: list[str]) -> Row | None:
    """`{"name": "road", "id": 7, "color": [128, 64, 128], "trainId": 0}` under whatever keys say so."""
    if not isinstance(item, dict):
        problems.append(f"{place}: expected an object with a name, found {kind(item)}")
        return None
    found = dict(_known(item))
    value, train_id = found.get("value", number), found.get("train")
    if type(value) is int and value < 0:
        return None  # no file can hold it
    values, colour = parse_values(value) or (), parse_colour(found.get("colour"))
    if not values:
        problems.append(f"{place}: expected a value from 0 to {MOST_VALUE}, found {kind(value)}")
    if found.get("colour") is not None and colour is None:
        problems.append(f"{place}: expected a colour such as [0, 255, 128], found {kind(found['colour'])}")
    if "train" in found and not (type(train_id) is int and -1 <= train_id <= MOST_VALUE):
        problems.append(f"{place}: expected a train id, with 255 or -1 for what is ignored, found {kind(train_id)}")
    name = found.get("name")
    if not isinstance(name, str) or not name.strip():
        problems.append(f"{place}: expected a name" + ("" if name is None else f", found {kind(name)}"))
        name = ""
    ignored = train_id in NO_TRAIN_ID or item.get("evaluate") is False
    one = coloured(place, name, colour, values)
    order = train_id if type(train_id) is int and not ignored else None
    return Row(place, name, one.colour, one.values, one.colours, order, ignored)


def _known(item: dict[str, Any]) -> Iterator[tuple[str, object]]:
    folded = {key.casefold(): value for key, value in reversed(item.items())}
    for what, keys in COLUMNS.items():
        if key := next((key for key in keys if key in folded), None):
            yield what, folded[key]


def _numbered(path: Path, names: dict[str, Any], colours: object) -> ClassTable:
    """`{"0": "sky", "1": "road"}`, and as datumaro writes it, a list of their colours beside it."""
    problems: list[str] = []
    rows = []
    drawn = colours if isinstance(colours, list) else []
    for number, (key, name) in enumerate(names.items()):
        place = f"{path}: {key}"
        values = parse_values(key)
        if _NUMBER.fullmatch(key) and int(key) < 0:
            continue  # no file can hold it
        if values is None:
            problems.append(f"{place}: expected a value from 0 to {MOST_VALUE}")
        if not isinstance(name, str) or not name.strip():
            problems.append(f"{place}: expected a name, found {kind(name)}")
            continue
        colour = parse_colour(drawn[number]) if number < len(drawn) else None
        if number < len(drawn) and colour is None:
            problems.append(f"{path}: segmentation_colors.{number}: expected a colour, found {kind(drawn[number])}")
        rows.append(coloured(place, name, colour, values or ()))
    return join(path, rows, problems)


def _named(path: Path, sources: dict[str, Any]) -> ClassTable:
    """`{"sky": [70, 130, 180]}`, `{"sky": "#4682b4"}`, `{"sky": 3}`, or a list of these."""
    problems: list[str] = []
    rows = []
    for name, source in sources.items():
        several = isinstance(source, list) and parse_colour(source) is None and source
        for item in source if several else [source]:
            place = f"{path}: {name}"
            colour, values = parse_colour(item), parse_values(item) or ()
            if colour is None and not values:
                problems.append(f"{place}: expected a colour such as [0, 255, 128] or a value, found {kind(item)}")
            rows.append(coloured(place, name, colour, () if colour else values))
    return join(path, rows, problems)
