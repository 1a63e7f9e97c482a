"""Change a raw folder for some days, with a build each night, and compare each pack with that of a fresh build.

    tools/run drills.histories [--count 300] [--seed N] [--source fields]

A day adds, changes, removes, renames and touches pairs, replaces files by pipes and devices, and edits the class table.
Format and --trust are random, too. Bad pairs are skipped. Builds read the folder, also
with depths and parts that rows may lack, or a pack of it that is built before each of them, or functions that read its
files. Of pictures with annotations, in a file of LabelMe for each or one of COCO for all, a day changes outlines,
categories and lists, replaces a file by one of its size and time, and damages the index of a file of COCO.
Every byte of shards, receipts and table is compared, and the manifest except for its number and time.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from program import parser
from scenes.outlines import OPTIONS
from scenes.pictures import CLASS_TABLE, write_picture
from scenes.tiny import CLASSES, HEIGHT, SHARDS, WIDTH, add_pair, make_tiny, tiny_scene, write_classes

from drills import outline_days
from drills.commands import light_workers, must
from drills.outline_days import change_outlined, make_outlined
from drills.published import same
from drills.sources import FIELDS, FOLDER, OUTLINED, PACK, ROWS, SOURCES, rows_of
from packer import build_pack
from packer.config.build_options import BuildOptions
from packer.config.options import MTIME, TRUSTS
from readers.contract.manifest import STORAGES

PAIRS = 9
DEEDS = ("add", "change", "remove", "rename", "touch", "mask", "class", "pipe", "device", "field")
PARTS = ("wheel", "door")
MULTILABEL = {"name": "parts", "kind": "multilabel", "from": "parts/{split}/{class}/{key}.png", "classes": PARTS}
DEPTH = "depth=values:depth/{split}/{key}.png"
FURTHER = ("--missing", "keep", "--field", DEPTH, "--field", json.dumps(MULTILABEL))
"""A row may lack its depth, and the file of each part."""
Day: TypeAlias = Sequence[tuple[str, int]]
"""The changes of a day, each with the number of a pair."""


@dataclass(frozen=True)
class History:
    """Some days, and the options of the nightly builds."""

    days: Sequence[Day]
    storage: str
    trust: str
    source: str = FOLDER


def histories(sources: Sequence[str] = SOURCES) -> st.SearchStrategy[History]:
    """Return random histories from one of these sources."""
    return st.sampled_from(sources).flatmap(_histories_of)


def _histories_of(source: str) -> st.SearchStrategy[History]:
    deed = st.tuples(st.sampled_from(outline_days.DEEDS if source in OUTLINED else DEEDS), st.integers(0, 30))
    days = st.lists(st.lists(deed, min_size=1, max_size=5), min_size=1, max_size=3)
    return st.builds(History, days, st.sampled_from(STORAGES), st.sampled_from(TRUSTS), st.just(source))


def differing_night(history: History, root: Path) -> int | None:
    """Run a history below `root`, and return the first night whose pack differs from that of a fresh build."""
    raw, out = root / "raw", root / "out"
    if history.source in OUTLINED:
        make_outlined(raw, history.source, PAIRS)
    else:
        make_tiny(raw, {"train": PAIRS})
    for number in range(2 * PAIRS if history.source == FIELDS else 0):
        change_field(raw, number, number)
    build_night(history, root, out)
    for night, day in enumerate(history.days):
        for deed, which in day:
            if history.source in OUTLINED:
                change_outlined(raw, history.source, deed, which, 100 * night + which)
            elif deed != "field":
                change(raw, deed, which, 100 * night + which)
            elif history.source == FIELDS:
                change_field(raw, which, 100 * night + which)
        build_night(history, root, out, history.trust)
        build_night(history, root, root / f"fresh{night}")
        if not same(out, root / f"fresh{night}"):
            return night
    return None


def build_night(history: History, root: Path, out: Path, trust: str = MTIME) -> None:
    """Build `out` from the source of a history."""
    raw, pack = root / "raw", root / "source"
    common = ("--quiet", "--workers", "1", "--on-bad", "skip", *SHARDS)
    options = (*common, "--format", history.storage, "--trust", trust)
    if history.source == ROWS:
        build: BuildOptions = {"workers": 1, "on_bad": "skip", "shard_size": SHARDS[1], "classes": raw / CLASS_TABLE}
        build |= {"format": history.storage, "trust": trust}
        with light_workers():
            build_pack(rows_of(raw, (HEIGHT, WIDTH)), out, **build)
    elif history.source == PACK:
        must("build", *common, "--labels", "index", raw, pack)
        must("build", *options, "--from", pack, out)
    elif history.source in OUTLINED:
        must("build", *options, "--missing", "keep", *OPTIONS[history.source], raw, out)
    else:
        must("build", *options, *(FURTHER if history.source == FIELDS else ()), raw, out)


def change(raw: Path, deed: str, which: int, number: int) -> None:
    """Make one change of a day."""
    images = sorted((raw / "train/images").iterdir())
    image = images[which % len(images)]
    mask = raw / "train/masks" / image.name
    pixels, colours = tiny_scene(number + 500)
    if deed == "add":
        name = f"street_{which:02}x"
        for folder in ("images", "masks"):
            (raw / "train" / folder / f"{name}.png").unlink(missing_ok=True)
        add_pair(raw, "train", name, number + 500)
    elif deed == "change":
        image.unlink()
        write_picture(image, pixels)
    elif deed == "mask":
        mask.unlink()
        write_picture(mask, colours)
    elif deed == "touch":
        os.utime(image, follow_symlinks=False)
    elif deed in ("pipe", "device"):
        spoil(mask if which % 2 else image, deed, images)
    elif deed == "class":
        edit_classes(raw, which)
    elif len(images) > 2:
        for path in (image, mask):
            if deed == "remove":
                path.unlink()
            else:
                path.rename(path.with_name(f"renamed_{which:02}.png"))


def change_field(raw: Path, which: int, number: int) -> None:
    """Write another depth or another part of a pair, or remove it every third time."""
    images = sorted((raw / "train/images").iterdir())
    name = images[which // 2 % len(images)].name
    depth, part = raw / "depth/train" / name, raw / "parts/train" / PARTS[which // 2 % len(PARTS)] / name
    path = part if which % 2 else depth
    if path.exists() and number % 3 == 0:
        path.unlink()
        return
    most, dtype = (9000, np.uint16) if path == depth else (2, np.uint8)
    write_picture(path, np.random.default_rng(number).integers(0, most, (HEIGHT, WIDTH), dtype))


def spoil(path: Path, deed: str, images: Sequence[Path]) -> None:
    """Replace a file of a pair by a pipe or a device, if other good pairs remain."""
    masks = Path(images[0].parent.parent / "masks")
    good = [image for image in images if image.is_file() and (masks / image.name).is_file()]
    if len(good) <= 2:
        return
    path.unlink()
    if deed == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")


def edit_classes(raw: Path, which: int) -> None:
    """Change a name, the order, or the number of classes, or restore the first table."""
    classes = list(CLASSES)
    kind, which = which % 4, which // 4 % len(classes)
    if kind == 0:
        classes[which] = (f"{classes[which][0]}_{which}", classes[which][1])
    elif kind == 1:
        classes.append(classes.pop(which))
    elif kind == 2:
        classes.append((f"new_{which}", (1, 2, which)))
    write_classes(raw, classes)


def drill(count: int, number: int, sources: Sequence[str] = SOURCES) -> Counter[str]:
    """Run `count` histories of this seed. Raise AssertionError for one that fails."""
    counts: Counter[str] = Counter()

    @seed(number)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(histories(sources))
    def all_nights_are_fresh(history: History) -> None:
        with tempfile.TemporaryDirectory() as folder:
            night = differing_night(history, Path(folder))
        counts.update(["histories", history.storage, history.trust, history.source], nights=len(history.days))
        counts.update(deed for day in history.days for deed, _ in day)
        assert night is None, f"night {night} of {history} differs from a fresh build"

    all_nights_are_fresh()
    return counts


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--count", type=int, default=300, help="number of histories")
    options.add_argument("--source", choices=SOURCES, help="what builds read; random by default")
    options.add_argument("--seed", type=int, default=random.randrange(1 << 32), help="seed of the histories")
    chosen = options.parse_args()
    print(f"seed {chosen.seed}", flush=True)
    try:
        counts = drill(chosen.count, chosen.seed, [chosen.source] if chosen.source else SOURCES)
    except AssertionError as differs:
        sys.exit(str(differs))
    for name in dict.fromkeys(("histories", "nights", *STORAGES, *TRUSTS, *SOURCES, *DEEDS, *outline_days.DEEDS)):
        print(f"{name:<10}{counts[name]:>7}")
