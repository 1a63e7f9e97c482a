"""Read thousands of damaged and hostile files of COCO, and account for every annotation.

    tools/run drills.coco_files [--count 2000] [--first 0]

Each case changes a good file: bytes that are flipped, deleted, repeated or cut off, or values somewhere in it that
become hostile ones: huge and negative numbers, NaN, deep lists, texts, nothing. The file is refused, or a picture of
it, or each of its annotations is seen in the label, or counted in a note: as many as Python's own JSON parser finds.
Exits 1 if an annotation was lost, a file that is not JSON was accepted, or anything else was raised than a refusal.
"""

from __future__ import annotations

import copy
import io
import json
import random
import re
import sys
import time
from collections import Counter
from typing import Any

import numpy as np
from program import parser
from tables import line

from packer.annotations.list_pictures import index_of
from packer.annotations.paint import Brush, Canvas
from packer.annotations.picture_index import PictureIndex
from packer.errors import BadPair

SIZE = (24, 36)
SLOW = 10.0
"""Seconds of a case that count as hanging."""
DEEP: list[Any] = []
for _ in range(500):
    DEEP = [DEEP]
HOSTILE: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        7,
        0.5,
        -0.0,
        1e308,
        1e9,
        10**25,
        -(10**25),
        float("nan"),
        float("inf"),
        2**31,
        2**63,
    ),
    *("", "x", "a.png", "1" * 100, "ÿ", "\ud800", "\x00", "PPPPPPPPPPPPPPPPP", "0" * 1000, "o"),
    *([], [[]], [[], []], [1, 2, 3], [[1, 2, 3]], [[1, 1] * 5000], [[[1, 1]]], [0] * 1000, [864], [10**9, 1], DEEP),
    *(
        {},
        {"counts": [864], "size": [24, 36]},
        {"counts": [1], "size": [10**6, 10**6]},
        {"counts": "0" * 99, "size": []},
    ),
)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--count", type=int, default=2000)
    options.add_argument("--first", type=int, default=0, help="the number of the first case; it decides all of them")
    chosen = options.parse_args()
    done = Counter[str]()
    for number in range(chosen.first, chosen.first + chosen.count):
        started = time.monotonic()
        try:
            done.update(account(mutated(number)))
        except Exception as error:  # noqa: BLE001 - this is what the drill looks for
            done["WRONG"] += 1
            print(f"case {number}: {type(error).__name__}: {error}", file=sys.stderr)
        if time.monotonic() - started > SLOW:
            done["WRONG"] += 1
            print(f"case {number}: took {time.monotonic() - started:.0f} s", file=sys.stderr)
    names = ("files refused", "pictures refused", "annotations seen", "annotations counted", "WRONG")
    widths = (-8, *(len(name) + 2 for name in names))
    print(line(("cases", *names), widths))
    print(line((chosen.count, *(done[name] for name in names)), widths))
    sys.exit(1 if done["WRONG"] else 0)


def mutated(number: int) -> bytes:
    """Return a changed file; the number decides what changes."""
    rng = random.Random(number)
    document = copy.deepcopy(GOOD)
    if number % 4:
        for _ in range(rng.randint(1, 3)):
            _replace(document, rng)
        return json.dumps(document, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
    data = bytearray(json.dumps(document).encode())
    for _ in range(rng.choice((1, 1, 1, 2, 10))):
        at, end = rng.randrange(len(data) or 1), rng.randrange(1, 40)
        change = rng.randrange(5)
        if change == 0:
            data[at : at + 1] = bytes([rng.randrange(256)])
        elif change == 1:
            del data[at : at + end]
        elif change == 2:
            data[at:at] = data[at : at + end]
        elif change == 3:
            data[at:at] = rng.choice((b"[" * 2000, b"\xff", b"}", b",", b"1e999", b"9" * 30, b'"', b"\x00"))
        else:
            del data[at:]
    return bytes(data)


def account(data: bytes) -> Counter[str]:
    """Read all pictures of a file. Raise AssertionError if an annotation is neither seen nor counted nor refused."""
    try:
        names: list[str] = []
        index = index_of(io.BytesIO(data), names)
    except BadPair:
        return Counter({"files refused": 1})
    document = json.loads(data)
    owners = Counter(each["image_id"] for each in document.get("annotations", []))
    strangers = sum(owners.values()) - sum(owners[image["id"]] for image in document["images"])
    noted = sum(int(note.split()[0]) for note in index.notes if "pictures" in note)
    assert noted == strangers, f"{strangers} annotations have no picture, {noted} are counted"
    assert len(names) == len(document["images"])
    found = Counter({"annotations counted": strangers})
    for name, image in zip(names, document["images"], strict=True):
        found.update(_picture(index, data, name, owners[image["id"]]))
    return found


def _picture(index: PictureIndex, data: bytes, name: str, expected: int) -> Counter[str]:
    try:
        picture, _ = index.read(io.BytesIO(data), name)
        if picture.size not in (None, SIZE):
            raise BadPair("is of another size")
        canvas = Canvas(picture, SIZE, Brush(dict.fromkeys(index.categories.values(), 1)))
    except BadPair:
        return Counter({"pictures refused": 1})
    seen = np.count_nonzero(np.unique(canvas.ids()))
    counted = sum(int(found[0]) for note in canvas.notes() if (found := re.match(r"\d+", note)))
    assert seen + counted == expected, f"{name}: {expected} annotations, {seen} seen and {counted} counted"
    return Counter({"annotations seen": seen, "annotations counted": counted})


def _replace(document: Any, rng: random.Random) -> None:
    """Replace a value: mostly in the outlines of an annotation, otherwise anywhere in the document."""
    holder: Any = document
    key: Any = rng.choice(list(document))
    if document["annotations"] and isinstance(document["annotations"], list) and rng.random() < 0.6:
        holder, key = document["annotations"], rng.randrange(len(document["annotations"]))
        if isinstance(holder[key], dict) and "segmentation" in holder[key]:
            holder, key = holder[key], "segmentation"
    while isinstance(holder[key], (dict, list)) and holder[key] and rng.random() < 0.95:
        holder = holder[key]
        key = rng.choice(list(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))
    holder[key] = rng.choice(HOSTILE)


def _good() -> dict[str, Any]:
    """Return a file with every form of annotation, some hidden, without a pixel, without a picture or a category."""
    ring = [2, 2, 12, 2.5, 12, 12, 2, 12]
    forms: tuple[Any, ...] = (
        *([ring], [ring, [20, 5, 30, 5, 30, 15.5]], [[40, 40, 50, 40, 50, 50]], [], None, [[1, 1, 2, 2]]),
        *({"counts": [100, 50, 714], "size": [24, 36]}, {"counts": "U?5c000000000000000000[4", "size": [24, 36]}),
    )
    annotations = [
        {"id": i, "image_id": 1 + i // 8, "category_id": 1 + i % 3, "segmentation": forms[i % 8], "iscrowd": i % 2}
        for i in range(26)
    ]
    images = [{"id": i, "file_name": f"{'abc'[i - 1]}.png", "height": 24, "width": 36} for i in (1, 2, 3)]
    return {
        "images": images,
        "annotations": annotations,
        "categories": [{"id": 1, "name": "car"}, {"id": 2, "name": "dog"}],
    }


GOOD = _good()
