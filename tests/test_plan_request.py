"""Every option fills one attribute of the request, has one default, and few files read it."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from dataclasses import MISSING, fields

import pytest
from checks.house import module_of, sources

from packer.config.options import BUILD, option_of, values_of
from packer.pixels.field_options import ClassesField, PictureField
from packer.plan.field_choice import FieldChoice
from packer.plan.request import Judgement, Request, Running, ShapeChoice, StoreChoice
from packer.plan.row_search import RowSearch

PARTS = {
    "rows": RowSearch,
    "fields": FieldChoice,
    "fields.image": PictureField,
    "fields.label": ClassesField,
    "shape": ShapeChoice,
    "store": StoreChoice,
    "judgement": Judgement,
    "running": Running,
}
INNER = {
    **dict.fromkeys(("rows.lists", "rows.pairs", "rows.missing", "rows.folds"), "rows.pairing"),
    **dict.fromkeys(("rows.split", "rows.split_by", "rows.split_exact"), "rows.pairing"),
    **dict.fromkeys(("rows.axis", "rows.orient", "rows.spacing"), "rows.source"),
    "fields.named": "fields.further",
    **dict.fromkeys(("judgement.on_bad", "judgement.max_bad"), "judgement.limits"),
    **dict.fromkeys(("rows.files.max_pixels", "rows.files.slide_level", "rows.files.place"), "rows.files"),
}
"""Options that are a part of one attribute, or that decide it."""
NO_OPTION = {"rows.raw", "rows.source", "rows.objects", "rows.pairing", "store.out", "fields.has_label"}
"""Attributes that the arguments RAW and OUT fill, and what follows from several options."""
ROOMS = {"packer.plan", "packer.building", "packer.packs", "packer.probe", "packer.cli"}
"""The rooms that know requests."""
MOST_FILES = 3


def test_each_option_fills_one_attribute() -> None:
    filled = Counter(option.fills for option in BUILD.values())
    assert set(filled.values()) == {1}
    known = {f"{part}.{field.name}" for part, type_ in PARTS.items() for field in fields(type_)}
    assert {INNER.get(fills, fills) for fills in filled} <= known


@pytest.mark.parametrize("part", ["rows", "fields", "shape", "store", "judgement", "running"])
def test_each_attribute_is_filled_by_an_option_and_has_no_default_of_its_own(part: str) -> None:
    filled = {INNER.get(option.fills, option.fills) for option in BUILD.values()}
    filled |= {f"fields.{option.fills.split('.')[1]}" for option in BUILD.values() if option.fills.count(".") == 2}
    for field in fields(PARTS[part]):
        assert field.default is MISSING, field.name
        assert field.default_factory is MISSING, field.name
        assert f"{part}.{field.name}" in filled | NO_OPTION, field.name


@pytest.mark.parametrize(("part", "type_"), [("fields.image", PictureField), ("fields.label", ClassesField)])
def test_image_and_label_have_the_defaults_of_their_kinds(part: str, type_: type) -> None:
    defaults = {field.name: field.default for field in fields(type_)}
    for name, value in values_of({}, part).items():
        assert (value or defaults[name]) == defaults[name], option_of(f"{part}.{name}").name


def test_the_request_has_six_parts() -> None:
    assert [field.name for field in fields(Request)] == [
        *(part for part in PARTS if "." not in part),
        "settings",
    ]


def test_few_files_read_an_option() -> None:
    """A file reads one if it takes the part as a parameter, or asks the request for it."""
    readers = defaultdict[str, set[str]](set)
    names = {type_.__name__: part for part, type_ in PARTS.items()}
    for path, tree in sources():
        if module_of(path).rpartition(".")[0] not in ROOMS:
            continue
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            holders = {
                argument.arg: names[argument.annotation.id]
                for argument in (*function.args.args, *function.args.kwonlyargs)
                if isinstance(argument.annotation, ast.Name) and argument.annotation.id in names
            }
            for node in (node for node in ast.walk(function) if isinstance(node, ast.Attribute)):
                match node.value:
                    case ast.Name(id=name) if name in holders:
                        readers[f"{holders[name]}.{node.attr}"].add(module_of(path))
                    case ast.Attribute(attr=part) if part in ("shape", "store", "judgement", "running"):
                        readers[f"{part}.{node.attr}"].add(module_of(path))
    assert len(readers) > 30
    every = {option.fills for option in BUILD.values()}
    assert {fills: found for fills, found in readers.items() if fills in every and len(found) > MOST_FILES} == {}
