"""Mapillary and ADE20K: polygons in JSON that the plain rule paints."""

from __future__ import annotations

import json
from random import Random
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from facts.write_facts import read_facts, unpacked
from mutated_annotations import mutated_json, painted_or_refused

from packer.annotations import ade20k_parts, cityscapes, mapillary
from packer.annotations.paint import Brush, Canvas
from packer.errors import BadPair

CASES = [case for case in read_facts("even_odd") if len(case["rings"]) == 1]
SQUARE, INNER = [[1, 1], [6, 1], [6, 6], [1, 6]], [[2, 2], [4, 2], [4, 4], [2, 4]]


def _mapillary(size: list[int], rings: list[Any]) -> dict[str, Any]:
    objects = [{"id": n, "label": f"object--{n}", "polygon": ring} for n, ring in enumerate(rings)]
    return {"height": size[0], "width": size[1], "objects": objects, "annotation_date": ""}


def _ade20k(size: list[int], rings: list[Any]) -> dict[str, Any]:
    objects = [
        {
            "name": f"object--{n}",
            "polygon": {"x": [x for x, _ in ring], "y": [y for _, y in ring]},
            "parts": {"hasparts": [], "ispartof": [], "part_level": 0},
        }
        for n, ring in enumerate(rings)
    ]
    return {"annotation": {"imsize": [*size, 3], "scene": [], "object": objects}}


FORMATS = [(mapillary, _mapillary), (ade20k_parts, _ade20k)]


@pytest.mark.parametrize(("module", "make"), FORMATS)
def test_every_polygon_is_painted_by_the_plain_rule(module: ModuleType, make: Any) -> None:
    for case in CASES:
        picture = module.read(json.dumps(make(case["size"], case["rings"])).encode())
        size = (case["size"][0], case["size"][1])
        assert picture.size == size
        label = Canvas(picture, size, Brush({"object--0": 1})).label()
        np.testing.assert_array_equal(label, unpacked(case["inside"], size, "u1"))


@pytest.mark.parametrize(("module", "make"), FORMATS)
def test_each_format_knows_its_files(module: ModuleType, make: Any) -> None:
    data = json.dumps(make([8, 8], [SQUARE])).encode()
    assert module.knows(data)
    assert not any(other.knows(data) for other in (mapillary, ade20k_parts, cityscapes) if other is not module)
    for text in ("", "[]", '{"annotation": []}', '{"height": 1, "width": 1, "objects": [1]}'):
        assert not module.knows(text.encode())


def test_parts_lie_on_what_they_are_parts_of() -> None:
    document = _ade20k([8, 8], [INNER, SQUARE, []])
    document["annotation"]["object"][0]["parts"]["part_level"] = 1
    picture = ade20k_parts.read(json.dumps(document).encode())
    canvas = Canvas(picture, (8, 8), Brush({"object--0": 1, "object--1": 2}))
    assert canvas.label()[2, 2] == 1
    assert canvas.planes(["object--0", "object--1"])[2, 2].tolist() == [1, 1]
    assert canvas.notes() == ("1 object without an outline",)


@pytest.mark.parametrize(
    ("module", "document", "words"),
    [
        (mapillary, {"height": 2, "objects": []}, "no height and width"),
        (mapillary, {"height": 2, "width": 2, "objects": [{"label": "a--b", "polygon": 3}]}, "list of points"),
        (ade20k_parts, {"annotation": 3}, "no table 'annotation'"),
        (ade20k_parts, {"annotation": {"imsize": [2, 0], "object": []}}, "no imsize"),
        (ade20k_parts, {"annotation": {"object": [{"polygon": {"x": [1], "y": []}}]}}, "lists of one length"),
        (ade20k_parts, {"annotation": {"object": [{"name": "a"}]}}, "without a polygon"),
    ],
)
def test_a_file_that_is_not_valid_is_refused_by_name(module: ModuleType, document: Any, words: str) -> None:
    with pytest.raises(BadPair, match=words):
        module.read(json.dumps(document).encode())


@pytest.mark.parametrize(("module", "make"), FORMATS)
def test_mutated_files_are_painted_or_refused_by_name(module: ModuleType, make: Any) -> None:
    random = Random(1)
    document = make([20, 30], [SQUARE, INNER, SQUARE])
    refused = sum(painted_or_refused(module.read, mutated_json(document, random)) for _ in range(300))
    assert 30 < refused < 300
