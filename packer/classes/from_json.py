"""Class tables as JSON of data sets and tools: Mapillary, COCO, datumaro, nnU-Net, and plain mappings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packer.classes.class_row import (
    A_COLOUR,
    A_VALUE,
    ClassRow,
    check_colour,
    check_name,
    check_train_id,
    check_values,
    class_row,
    expected,
)
from packer.classes.from_text import COLUMNS, table_from_names
from packer.classes.from_toml import CLASS, table_from_toml
from packer.classes.ignore import with_ignored
from packer.classes.merge import merge_rows
from packer.classes.values import is_negative, is_number, parse_colour, parse_values
from packer.errors import SettingsError
from readers.contract.classes import ClassTable

IGNORE = "ignore"
"""The label whose pixels nnU-Net does not train on."""
_LISTS = ("labels", "classes", "categories")


def table_from_json(path: Path, document: object) -> ClassTable:
    """Return the class table of a JSON document; its shape shows which form it has."""
    if isinstance(document, dict):
        if CLASS in document and isinstance(document[CLASS], list):
            return table_from_toml(path, document)
        for key in _LISTS:
            if isinstance(document.get(key), list):
                return _listed(path, f"{key}.", document[key])
        if isinstance(document.get("label_map"), dict):
            return _numbered(path, document["label_map"], document.get("segmentation_colors"))
        if isinstance(labels := document.get("labels"), dict) and labels:
            return _of_data_set(path, labels)
        if document and all(map(is_number, document)):
            return _numbered(path, document, None)
        if document:
            return _named(path, document)
    elif isinstance(document, list) and document:
        return _listed(path, "", document)
    raise SettingsError(
        f'{path}: is not a class table; expected {{"0": "sky", "1": "road"}}, {{"sky": [70, 130, 180]}}, '
        '["sky", "road"], or labels such as {"name": "sky", "id": 0, "color": [70, 130, 180]}'
    )


def _of_data_set(path: Path, labels: dict[str, Any]) -> ClassTable:
    """Return the table of the labels in nnU-Net's dataset.json, or in the older form of the Decathlon."""
    if all(map(is_number, labels)):
        return _numbered(path, labels, None)
    return with_ignored(_named(path, labels), [IGNORE] if IGNORE in labels else [], str(path))


def _listed(path: Path, prefix: str, items: list[Any]) -> ClassTable:
    """Return the table of names or objects; an object without a value has its index in the list as value."""
    if all(isinstance(item, str) for item in items):
        return table_from_names(path, [(f"{path}: {prefix}{index}", item) for index, item in enumerate(items)])
    problems: list[str] = []
    rows = [_object(f"{path}: {prefix}{index}", index, item, problems) for index, item in enumerate(items)]
    return merge_rows(path, [row for row in rows if row is not None], problems, shared_colours=True)


def _object(where: str, index: int, item: object, problems: list[str]) -> ClassRow | None:
    """Check `{"name": "road", "id": 7, "color": [128, 64, 128], "trainId": 0}` under any of the known keys."""
    if not isinstance(item, dict):
        problems.append(expected(where, "an object with a name", item))
        return None
    cells = dict(_known(item))
    value, colour = cells.get("value", index), cells.get("colour")
    if is_negative(value):
        return None  # no label file can contain it
    return class_row(
        where,
        check_name(where, cells.get("name"), problems),
        None if colour is None else check_colour(where, colour, problems),
        check_values(where, value, problems),
        check_train_id(where, cells["train"], problems) if "train" in cells else None,
        ignored=item.get("evaluate") is False,
    )


def _known(item: dict[str, Any]) -> Iterator[tuple[str, object]]:
    folded = {key.casefold(): value for key, value in reversed(item.items())}
    for column, keys in COLUMNS.items():
        if key := next((key for key in keys if key in folded), None):
            yield column, folded[key]


def _numbered(path: Path, names: dict[str, Any], colours: object) -> ClassTable:
    """Return the table of `{"0": "sky", "1": "road"}`. Datumaro adds a list of colours in the same order."""
    problems: list[str] = []
    rows = []
    drawn = colours if isinstance(colours, list) else []
    for index, (key, name) in enumerate(names.items()):
        if is_negative(key):
            continue  # no label file can contain it
        where = f"{path}: {key}"
        values, name = check_values(where, key, problems), check_name(where, name, problems)
        colour = None
        if index < len(drawn):
            colour = check_colour(f"{path}: segmentation_colors.{index}", drawn[index], problems)
        rows.append(class_row(where, name, colour, values))
    return merge_rows(path, rows, problems)


def _named(path: Path, sources: dict[str, Any]) -> ClassTable:
    """Return the table of `{"sky": [70, 130, 180]}`, `{"sky": "#4682b4"}`, `{"sky": 3}`, or a list of these."""
    problems: list[str] = []
    rows = []
    for name, source in sources.items():
        several = isinstance(source, list) and parse_colour(source) is None and source
        for item in source if several else [source]:
            where = f"{path}: {name}"
            colour, values = parse_colour(item), parse_values(item) or ()
            if colour is None and not values:
                problems.append(expected(where, f"{A_COLOUR}, or {A_VALUE}", item))
            rows.append(class_row(where, name, colour, () if colour else values))
    return merge_rows(path, rows, problems)
