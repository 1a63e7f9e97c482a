"""Plant mistakes in the labels of a pack, and count how many of them the scores of two recipes put first.

    tools/run drills.mistakes PACK FOLDER [--only exchanged]

FOLDER gets a pack for each kind of mistake, made from PACK: `swapped` has two classes swapped in the smallest split,
`shifted` ten labels moved by 8 pixels, `exchanged` 3 % of all labels exchanged with others. Next to each are the scores
of label_errors.py (`model`) and label_shifts.py (`edges`) of docs/recipes. It exits 1 if the model does not put all
exchanged labels among the first 5 % of all rows.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from program import REPO, parser
from tables import aligned

from packer import Rows, build_pack
from readers import SegDataset, open_dataset
from readers.contract.classes import ClassTable
from readers.contract.manifest import ALL

RECIPES = REPO / "docs" / "recipes"
SCORES = {"model": ("label_errors.py", "-predictions/scores.csv"), "edges": ("label_shifts.py", "-shifts.csv")}
"""For each score its recipe, and the end of the file that it writes next to a pack."""
SHIFTED, PIXELS = 10, 8
EXCHANGED, FIRST = 0.03, 0.05
Label = NDArray[np.uint8]
Planted = dict[int, Callable[[int], Label]]
"""Rows with a mistake, and a function that returns the wrong label of a row."""


def label_of(data: SegDataset, row: int) -> Label:
    """Return the label of a row as class numbers."""
    return np.asarray(data[row].label)


def split_rows(data: SegDataset) -> dict[str, range]:
    """Return the rows of each split."""
    edges = np.cumsum([0, *(split.rows for split in data.manifest.splits)]).tolist()
    return {split.name: range(*edges[n : n + 2]) for n, split in enumerate(data.manifest.splits)}


def names_of(data: SegDataset) -> list[tuple[str, str]]:
    """Return the split and the key of each row."""
    return [(split, data.key(row)) for split, rows in split_rows(data).items() for row in rows]


def swapped(data: SegDataset, dice: np.random.Generator, classes: Sequence[int]) -> Planted:
    """Swap two classes in the smallest split."""
    numbers = np.arange(256, dtype=np.uint8)
    numbers[list(classes)] = classes[::-1]
    rows = min(split_rows(data).values(), key=len)
    return dict.fromkeys(rows, lambda row: numbers[label_of(data, row)])


def shifted(data: SegDataset, dice: np.random.Generator, classes: Sequence[int]) -> Planted:
    """Move some labels right and down. Their first line and column fill the gap."""
    rows = dice.choice(len(data), SHIFTED, replace=False).tolist()
    margin = ((PIXELS, 0), (PIXELS, 0))
    return dict.fromkeys(rows, lambda row: np.pad(label_of(data, row), margin, "edge")[:-PIXELS, :-PIXELS])


def exchanged(data: SegDataset, dice: np.random.Generator, classes: Sequence[int]) -> Planted:
    """Give each of some rows the label of the next of them."""
    rows = dice.choice(len(data), max(2, round(EXCHANGED * len(data))), replace=False).tolist()
    others = dict(zip(rows, rows[1:] + rows[:1], strict=True))
    return dict.fromkeys(rows, lambda row: label_of(data, others[row]))


KINDS = {"swapped": swapped, "shifted": shifted, "exchanged": exchanged}


def plant(data: SegDataset, planted: Planted, out: Path) -> None:
    """Pack the rows of a pack again, some with a wrong label."""
    numbers = {key if split == ALL else (split, key): row for row, (split, key) in enumerate(names_of(data))}

    def load(name: Any) -> dict[str, Any]:
        row = numbers[name]
        image = np.ascontiguousarray(np.asarray(data[row].image).transpose(1, 2, 0))
        return {"image": image, "label": planted[row](row) if row in planted else label_of(data, row)}

    numbered = tuple(replace(known, values=(number,)) for number, known in enumerate(data.classes.classes))
    build_pack(Rows(list(numbers), load), out, classes=ClassTable(numbered, (255,)), labels="index", workers=1)


def ranks(scores: Path, names: Sequence[str]) -> list[int]:
    """Return the ranks of rows such as `train/street_01` by their score; 1 is the worst."""
    with scores.open(newline="") as file:
        known = {name: float(score) for name, score in csv.reader(file)}
    order = sorted(known, key=known.__getitem__)
    return sorted(1 + order.index(name) for name in names)


def main() -> int:
    options = parser(__doc__)
    options.add_argument("pack", type=Path)
    options.add_argument("folder", type=Path)
    options.add_argument("--only", choices=KINDS, action="append", help="plant this kind alone; can be repeated")
    options.add_argument("--by", choices=SCORES, action="append", help="run this recipe alone")
    options.add_argument("--classes", nargs=2, type=int, default=(0, 1), help="the classes that are swapped")
    options.add_argument("--epochs", default="6")
    chosen = options.parse_args()
    data, late = open_dataset(chosen.pack, split="all", label="index"), 0
    names = ["/".join(name) for name in names_of(data)]
    table = [("mistake", "score", "rows", "planted", "in the first 5 %", "median rank", "last rank")]
    for kind in chosen.only or KINDS:
        planted = KINDS[kind](data, np.random.default_rng(0), chosen.classes)
        out = chosen.folder / kind
        plant(data, planted, out)
        for by in chosen.by or SCORES:
            recipe, end = SCORES[by]
            command = [sys.executable, str(RECIPES / recipe), str(out), *[chosen.epochs] * (by == "model")]
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
            found = ranks(Path(f"{out}{end}"), [names[row] for row in planted])
            first = sum(rank <= FIRST * len(data) for rank in found)
            late += (len(found) - first) * (kind == "exchanged" and by == "model")
            numbers = (len(data), len(found), first, f"{median(found):g}", found[-1])
            table.append((kind, by, *map(str, numbers)))  # type: ignore[arg-type]
    print("\n".join(aligned(table)))
    return int(late > 0)
