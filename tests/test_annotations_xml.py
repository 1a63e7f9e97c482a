"""Annotations in XML: Pascal VOC as `supervision` paints it, LabelMe of the web by the plain rule."""

from __future__ import annotations

from random import Random
from types import ModuleType

import numpy as np
import pytest
from facts.write_facts import read_facts, unpacked
from mutated_annotations import mutated_bytes, painted_or_refused

from packer.annotations import labelme_web, voc
from packer.annotations.paint import mask_of, window
from packer.annotations.xml_elements import FEW_ELEMENTS, MOST_DEPTH
from packer.errors import BadPair

VOC = read_facts("voc")
PLAIN = read_facts("even_odd")
BOX = "<object><name>dog</name><bndbox><xmin>1</xmin></bndbox></object>"
TRIANGLE = "<pt><x>1</x><y>1</y></pt><pt><x>4.5</x><y>1</y></pt><pt><x>1</x><y>4</y></pt>"
WEB = f"""<annotation><filename>a.jpg</filename><imagesize><nrows>7</nrows><ncols>9</ncols></imagesize>
<object><name>cat</name><deleted>0</deleted><polygon><username>me</username>{TRIANGLE}</polygon></object>
<object><name>cat</name><deleted>1</deleted><polygon>{TRIANGLE}</polygon></object>
<object><name>dog</name><type>bounding_box</type><polygon>{TRIANGLE}</polygon></object>
<object><name>dog</name><segm><mask>a_mask_1.png</mask></segm></object></annotation>"""
BOMB = '<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;">]><annotation>&c;</annotation>'


def test_masks_of_voc_are_those_of_supervision() -> None:
    count = 0
    for case in VOC:
        size = (case["size"][0], case["size"][1])
        picture = voc.read(case["xml"].encode())
        assert picture.size == size
        bits = np.unpackbits(unpacked(case["masks"], (-1, 1), "u1"))
        masks = bits[: len(picture.annotations) * size[0] * size[1]].reshape(-1, *size)
        for each, expected in zip(picture.annotations, masks, strict=True):
            painted, mask = np.zeros(size, np.uint8), mask_of(each, size)
            window(painted, mask)[mask.inside] = 1
            np.testing.assert_array_equal(painted, expected)
            count += 1
    assert count >= 100


def test_polygons_of_labelme_are_painted_by_the_plain_rule() -> None:
    for case in PLAIN:
        size = (case["size"][0], case["size"][1])
        texts = ["".join(f"<pt><x>{x}</x><y>{y}</y></pt>" for x, y in ring) for ring in case["rings"][:1]]
        objects = [f"<object><name>cat</name><polygon>{text}</polygon></object>" for text in texts]
        (found,) = labelme_web.read(f"<annotation>{objects[0]}</annotation>".encode()).annotations
        painted, mask = np.zeros(size, np.uint8), mask_of(found, size)
        window(painted, mask)[mask.inside] = 1
        if len(case["rings"]) == 1:
            np.testing.assert_array_equal(painted, unpacked(case["inside"], size, "u1"))


def test_boxes_are_counted_as_lost() -> None:
    outline = "<object><name>dog</name><polygon><x1>1</x1><y1>1</y1></polygon></object>"
    picture = voc.read(f"<annotation>{BOX}{outline}{BOX}</annotation>".encode())
    assert (len(picture.annotations), picture.lost) == (1, {"with a box and no outline": 2})
    with pytest.raises(BadPair, match="has 2 boxes and no outline"):
        voc.read(f"<annotation>{BOX}{BOX}</annotation>".encode())
    web = labelme_web.read(WEB.encode())
    assert (web.size, web.name, [each.category for each in web.annotations]) == ((7, 9), "a.jpg", ["cat"])
    assert web.lost == {
        "marked as deleted": 1,
        "with a box and no outline": 1,
        "with a mask in another file": 1,
    }


def test_each_format_knows_its_files_and_none_with_boxes_only() -> None:
    files = {voc: VOC[0]["xml"], labelme_web: WEB}
    for module, text in files.items():
        assert module.knows(text.encode())
        assert not any(module.knows(other.encode()) for name, other in files.items() if name is not module)
        for other in (f"<annotation>{BOX}</annotation>", "", "{}", "<annotation>", "<a/>", BOMB):
            assert not module.knows(other.encode())


@pytest.mark.parametrize("module", [voc, labelme_web])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BOMB, "document type, which could define entities"),
        ('<!DOCTYPE a SYSTEM "file:///etc/passwd"><annotation/>', "document type"),
        ("<a>" * (MOST_DEPTH + 1) + "</a>" * (MOST_DEPTH + 1), "nested deeper than"),
        ("<a>" * (FEW_ELEMENTS + 1), "nested deeper than"),
        ("<annotation>", "is not valid XML"),
        ("<image/>", "is not an <annotation>"),
        ("<annotation><object/></annotation>", "an object without a name"),
        ("<?xml version='1.0' encoding='x-none'?><annotation/>", "is not valid XML"),
    ],
)
def test_xml_that_is_not_valid_is_refused_by_name(module: ModuleType, text: str, words: str) -> None:
    with pytest.raises(BadPair, match=words):
        module.read(text.encode())


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ("<x1>nan</x1><y1>1</y1>", "'nan' in <x1>, which is not a finite number"),
        ("<x1>1</x1>", "a polygon of 1 numbers"),
        ("<x1>1e300</x1><y1>1</y1>", "pixels away"),
        ("<x1/><y1>1</y1>", "not a finite number"),
    ],
)
def test_points_that_are_not_valid_are_refused_by_name(numbers: str, words: str) -> None:
    with pytest.raises(BadPair, match=words):
        voc.read(f"<annotation><object><name>a</name><polygon>{numbers}</polygon></object></annotation>".encode())


@pytest.mark.parametrize(("module", "text"), [(voc, VOC[0]["xml"]), (labelme_web, WEB)])
def test_mutated_xml_is_painted_or_refused_by_name(module: ModuleType, text: str) -> None:
    random = Random(3)
    refused = sum(painted_or_refused(module.read, mutated_bytes(text.encode(), random)) for _ in range(300))
    assert 60 < refused <= 300
