"""Paint made annotations with cityscapesScripts, and keep its label and instance images.

tools/run facts.cityscapes     in an environment with segpack and tools/facts/requirements.txt
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

import numpy as np
from cityscapesscripts.helpers.annotation import Annotation
from cityscapesscripts.helpers.labels import labels
from cityscapesscripts.preparation.json2instanceImg import createInstanceImage
from cityscapesscripts.preparation.json2labelImg import createLabelImage

from facts.made_shapes import polygon
from facts.write_facts import packed, write_facts

NAMES = [*(label.name for label in labels), "cargroup", "persongroup", "polegroup", "buildinggroup"]


def document(random: Random) -> dict[str, Any]:
    """Return a file of Cityscapes with a few objects."""
    height, width = random.randint(20, 60), random.randint(20, 90)
    return {"imgHeight": height, "imgWidth": width, "objects": [_object(random, height, width) for _ in range(14)]}


def _object(random: Random, height: int, width: int) -> dict[str, Any]:
    found = {"label": random.choice(NAMES), "polygon": polygon(random, height, width, random.choice([0, 0, 1, 3]))}
    return {**found, "deleted": 1} if random.random() < 0.1 else found


def main() -> None:
    cases = []
    for seed in range(16):
        made = document(Random(seed))
        annotation = Annotation()
        annotation.fromJsonText(json.dumps(made))
        label = np.asarray(createLabelImage(annotation, "ids"))
        ids = np.asarray(createInstanceImage(annotation, "ids")).astype(np.uint16)
        cases.append({"document": made, "label": packed(label), "ids": packed(ids)})
    write_facts("cityscapes", ["cityscapesScripts", "pillow"], cases)
