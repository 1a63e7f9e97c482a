"""Write the tables and the pictures of docs/measured/rasterising.md from the masks that facts.rasterising keeps.

tools/run facts.rasterising_page
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from program import REPO, parser
from tables import markdown

from facts.made_shapes import Points
from facts.rasterising import SHAPES, SIDE, mask_of
from facts.write_facts import FACTS

PAGE = REPO / "docs" / "measured" / "rasterising.md"
PICTURES = PAGE.parent / "rasterising"
BEGIN, END = "<!-- made by facts.rasterising_page -->", "<!-- end -->"
ZOOM, GAP, TEXT = 14, 24, 28
PAPER, INK, GRID, OUTLINE, TEXT_COLOUR = (255, 255, 255), (120, 170, 220), (215, 215, 215), (200, 60, 40), (40, 40, 40)
Mask = NDArray[np.bool_]


def main() -> None:
    parser(__doc__).parse_args()
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(before + BEGIN + "\n" + tables() + END + rest.partition(END)[2], encoding="utf-8")
    PICTURES.mkdir(exist_ok=True)
    for shape, (_, points) in SHAPES.items():
        picture(groups(shape), points).quantize(16).save(PICTURES / f"{shape}.png", optimize=True)


def tools() -> dict[str, dict[str, Mask]]:
    """Return the masks of each tool by the name of the shape."""
    kept = json.loads((FACTS / "rasterising.json").read_text(encoding="utf-8"))
    return {name: {shape: mask_of(text) for shape, text in facts["masks"].items()} for name, facts in kept.items()}


def groups(shape: str) -> list[tuple[list[str], Mask]]:
    """Return the different masks of a shape, and the tools that paint each."""
    found: dict[bytes, tuple[list[str], Mask]] = {}
    for name, masks in tools().items():
        found.setdefault(masks[shape].tobytes(), ([], masks[shape]))[0].append(name)
    return list(found.values())


def tables() -> str:
    """Return all tables as Markdown."""
    return "".join(f"{text}\n" for text in (*_versions(), "", *_overlaps(), *_shapes()))


def _versions() -> Iterator[str]:
    kept = json.loads((FACTS / "rasterising.json").read_text(encoding="utf-8"))
    versions = dict.fromkeys(facts["version"] for facts in kept.values())
    yield f"Versions: {', '.join(versions)}."


def _table(head: str, number: Callable[[Mask, Mask], str]) -> Iterator[str]:
    """Yield a row for each tool: a number for its mask of each shape, next to that of the first tool."""
    masks = tools()
    first = next(iter(masks.values()))
    rows = [[head, *(re.sub(":.*", "", title) for title, _ in SHAPES.values())]]
    rows += [[name, *(number(painted[shape], first[shape]) for shape in SHAPES)] for name, painted in masks.items()]
    yield from markdown(rows)


def _overlaps() -> Iterator[str]:
    yield f"Intersection over union with {next(iter(tools()))}:\n"
    yield from _table("IoU", _iou)
    yield ""


def _shapes() -> Iterator[str]:
    for shape, (title, points) in SHAPES.items():
        yield f"### {title[0].upper()}{title[1:]}\n"
        yield f"`{points}`\n"
        yield f"![{title}, as each tool paints it](rasterising/{shape}.png)\n"


def _iou(one: Mask, other: Mask) -> str:
    either = np.count_nonzero(one | other)
    return f"{np.count_nonzero(one & other) / either:.2f}" if either else "1.00"


def picture(found: list[tuple[list[str], Mask]], points: Points) -> Image.Image:
    """Draw the different masks of a shape next to each other, with its outline."""
    side = ZOOM * SIDE
    columns = min(4, len(found))
    rows = -(-len(found) // columns)
    sheet = Image.new("RGB", (columns * (side + GAP) + GAP, rows * (side + GAP + TEXT) + GAP), PAPER)
    draw = ImageDraw.Draw(sheet)
    for number, (names, mask) in enumerate(found):
        left, top = GAP + number % columns * (side + GAP), GAP + number // columns * (side + GAP + TEXT)
        sheet.paste(_panel(mask, points), (left, top))
        letter = chr(ord("A") + number)
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        draw.text((left, top + side + 6), f"{letter}: {names[0]}{more}", fill=TEXT_COLOUR)
    return sheet


def _panel(mask: Mask, points: Points) -> Image.Image:
    panel = Image.new("RGB", (ZOOM * SIDE + 1, ZOOM * SIDE + 1), PAPER)
    draw = ImageDraw.Draw(panel)
    for row, column in np.argwhere(mask).tolist():
        draw.rectangle((ZOOM * column, ZOOM * row, ZOOM * column + ZOOM, ZOOM * row + ZOOM), fill=INK)
    for line in range(SIDE + 1):
        draw.line((0, ZOOM * line, ZOOM * SIDE, ZOOM * line), fill=GRID)
        draw.line((ZOOM * line, 0, ZOOM * line, ZOOM * SIDE), fill=GRID)
    draw.line([(ZOOM * x, ZOOM * y) for x, y in [*points, points[0]]], fill=OUTLINE, width=2)
    return panel
