"""Read and paint made Pascal VOC files with `supervision`, and keep the masks.

tools/run facts.voc     in an environment with segpack and tools/facts/requirements.txt
"""

from __future__ import annotations

from random import Random
from xml.etree import ElementTree

import numpy as np
from supervision.dataset.formats.pascal_voc import detections_from_xml_obj

from facts.made_shapes import Points, polygon
from facts.write_facts import packed, write_facts


def object_xml(name: str, rings: list[Points]) -> str:
    """Return an object with its rings, each as <x1>, <y1>, <x2>, ... It has a box that nobody reads."""
    box = "<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>2</xmax><ymax>2</ymax></bndbox>"
    texts = ["".join(f"<x{i}>{x}</x{i}><y{i}>{y}</y{i}>" for i, (x, y) in enumerate(ring, 1)) for ring in rings]
    return f"<object><name>{name}</name>{box}{''.join(f'<polygon>{text}</polygon>' for text in texts)}</object>"


def main() -> None:
    cases = []
    for seed in range(12):
        random = Random(seed)
        height, width = random.randint(10, 40), random.randint(10, 60)
        objects = [
            object_xml(f"name{n}", [polygon(random, height, width, random.choice([0, 1, 3])) for _ in range(1 + n % 2)])
            for n in range(10)
        ]
        size = f"<size><width>{width}</width><height>{height}</height><depth>3</depth></size>"
        xml = f"<annotation><filename>{seed}.jpg</filename>{size}{''.join(objects)}</annotation>"
        found, _ = detections_from_xml_obj(ElementTree.fromstring(xml), [], (width, height), force_masks=True)
        assert found.mask is not None
        cases.append({"size": [height, width], "xml": xml, "masks": packed(np.packbits(found.mask))})
    write_facts("voc", ["supervision", "opencv-python-headless", "numpy"], cases)
