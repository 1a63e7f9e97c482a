"""Manifests with fields of all kinds and with several parts, changed as documents: values are replaced or left out.

Their checksum fits, so that every other check of a manifest is reached.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from readers.contract.classes import ClassTable, SegClass
from readers.contract.fields import Field, classes_field, picture_field
from readers.contract.json_entry import fingerprint
from readers.contract.kinds import BITS, IDS, INDEX, KINDS, MULTILABEL, PLANES, VALUES
from readers.contract.manifest import Manifest, Split
from readers.contract.parts import Part
from readers.contract.statistics import no_rows
from readers.delivered import delivered

SIZE = (5, 7)
VALUES_TO_PUT: tuple[Any, ...] = (
    *(None, True, False, "", "nan", "raw", "tiles", "image", "label", "|u1", "<u4", "<f2", "<f4", "<i2", [], {}),
    *(0, 1, 2, 3, 9, 17, 255, 65535, -1, 0.5, 1e300, 2**31, 2**53, 2**63 - 1, 2**63, 10**400, [1, 2], [None, None]),
    *KINDS,
)
Place = tuple[Any, Any]
"""An object or a list of a document, and a key in it."""


def manifests() -> tuple[Manifest, ...]:
    """Return manifests of all kinds of fields: with one part, with several, and with rows of any size."""
    table = ClassTable((SegClass("cell", (1, 2, 3), (1,)), SegClass("wall", None, (2,), ((0, 0, 0, 0),))), (0,))
    found = []
    for size in (SIZE, None):
        shape = size or (None, None)
        fields = (
            picture_field("scan", "<u2", size, ("red", "infrared")),
            classes_field("label", INDEX, table, size),
            Field("instance", IDS, INDEX, "<u4", shape),
            Field("depth", VALUES, INDEX, "<f2", shape, fill="nan", optional=True),
            Field("parts", MULTILABEL, BITS, "|u1", (1, *shape), classes=table, optional=True),
            Field("planes", MULTILABEL, PLANES, "|u1", (2, *shape), classes=table, encoding="tiles", tile=(4, 4)),
        )
        names = tuple(field.name for field in fields)
        parts = tuple(
            Part(tuple(name for name in names if name not in lost), 3, 2) for lost in ((), ("parts",), ("depth",))
        )
        split = Split("all", 9, 6, 1, parts, no_rows(fields))
        found.append(Manifest(1, "", "npy", fields, (split,), 0, "0" * 64))
    return (*found, replace(found[0], fields=fields[:1], splits=(_only(found[0].splits[0], fields[0]),)))


def _only(split: Split, field: Field) -> Split:
    part = Part((field.name,), split.rows, split.shards)
    return replace(split, parts=(part,), statistics=no_rows((field,)))


def read_changed(seed: bytes) -> None:
    """Read a manifest with the changes that a seed gives, none for a single byte, and use the fields if it is taken."""
    dice = random.Random(seed)
    document = copy.deepcopy(dice.choice(manifests()).to_json())
    for _ in range(dice.choice((1, 1, 1, 2, 4)) if len(seed) > 1 else 0):
        _change(document, dice)
    document["checksum"] = fingerprint(document)
    manifest = Manifest.from_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "changed")
    for each in delivered(manifest.fields, {}):
        assert isinstance(each.field.fill_number, (int, float))
        assert each.field.row_bytes_at(1, 1) < 2**40
    assert manifest.rows == sum(part.rows for split in manifest.splits for part in split.parts)


def _change(document: dict[str, Any], dice: random.Random) -> None:
    """Replace, move, add or leave out one value anywhere in a document."""
    places = list(_places(document))
    inside, key = dice.choice(places)
    match dice.randrange(5):
        case 0 if isinstance(inside, dict):
            del inside[key]
        case 0 | 1 if isinstance(inside, list):
            inside.insert(key, copy.deepcopy(inside[dice.randrange(len(inside))]))
        case 1:
            inside[dice.choice(("extra", "name", "fields", "fill"))] = dice.choice(VALUES_TO_PUT)
        case 2:
            other, name = dice.choice(places)
            inside[key] = copy.deepcopy(other[name])
        case _:
            inside[key] = copy.deepcopy(dice.choice(VALUES_TO_PUT))


def _places(value: Any) -> Iterator[Place]:
    """Yield every place of a document."""
    for key in value if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from _places(value[key])
