"""Changes of a day to pictures with annotations, and damage to the index of a file of many pictures."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

from scenes.outlines import COCO, FILE, IMAGES, LABELME, Outlines, read_outlines, triangle, write_noisy, write_outlines
from scenes.tiny import age

from packer.sources.annotated.kept_indexes import index_folder
from packer.sources.file_states import state_of

DEEDS = (
    *("add", "change", "remove", "touch", "polygon", "object", "deletion", "category", "replaced", "unlisted"),
    *("pipe", "no index", "bad index"),
)


def make_outlined(raw: Path, kind: str, pictures: int) -> None:
    """Make pictures with up to three triangles, with old times of writing."""
    outlines = Outlines()
    for number in range(pictures):
        _add(raw, outlines, f"street_{number:03}", number)
    write_outlines(raw, kind, outlines)
    age(raw)


def change_outlined(raw: Path, kind: str, deed: str, which: int, number: int) -> None:
    """Make one change of a day."""
    if deed in ("no index", "bad index"):
        damage_index(raw, None if deed == "no index" else number)
        return
    outlines = read_outlines(raw, kind)
    images = sorted((raw / IMAGES).glob("*.png"))
    image = images[which % len(images)]
    key = image.stem
    if deed == "add":
        _add(raw, outlines, f"street_{which:02}x", number)
    elif deed == "change":
        write_noisy(raw, key, number + 500)
    elif deed == "touch":
        os.utime(image if which % 2 else raw / FILE if kind == COCO else image)
    elif deed == "remove" and len(images) > 2:
        image.unlink()
        outlines.pictures.pop(key, None)
    elif deed == "category":
        outlines.names[which % len(outlines.names)] = f"name_{number % 3}_{which % len(outlines.names)}"
    elif deed in ("polygon", "replaced") and outlines.pictures.get(key):
        outlines.pictures[key][0] = triangle(number)
    elif deed in ("object", "deletion"):
        has = outlines.pictures.setdefault(key, [])
        has.append(triangle(number)) if deed == "object" or not has else has.pop(which % len(has))
    elif deed == "unlisted" and len(outlines.pictures) > 2:
        outlines.pictures.pop(key, None)
    if deed == "replaced":
        _replace(raw, kind, outlines, key, in_place=number % 2 == 0)
    else:
        write_outlines(raw, kind, outlines)
    if deed == "pipe" and kind == LABELME and len(outlines.pictures) > 2:
        image.with_suffix(".json").unlink(missing_ok=True)
        os.mkfifo(image.with_suffix(".json"))


def damage_index(raw: Path, seed: int | None) -> None:
    """Delete the temporary index of the file of COCO, or change some bytes of one of its files."""
    folder = index_folder(f"{raw.absolute()}/{FILE}", state_of(f"{raw}/{FILE}"))
    if folder is None or not folder.is_dir():
        return
    if seed is None:
        shutil.rmtree(folder)
        return
    dice = random.Random(seed)
    path = dice.choice(sorted(folder.iterdir()))
    data = bytearray(path.read_bytes())
    for _ in range(dice.choice((1, 8))):
        data[dice.randrange(len(data))] ^= dice.randrange(1, 256)
    path.write_bytes(data[: dice.choice((len(data), len(data), dice.randrange(len(data))))])


def _add(raw: Path, outlines: Outlines, key: str, number: int) -> None:
    write_noisy(raw, key, number)
    outlines.pictures[key] = [triangle((number, which)) for which in range(number % 4)]


def _replace(raw: Path, kind: str, outlines: Outlines, key: str, in_place: bool) -> None:
    """Write a file of the same size, and give it the times that it had."""
    path = raw / FILE if kind == COCO else raw / IMAGES / f"{key}.json"
    if not path.is_file():
        return
    before, old = path.stat(), path.with_name("before")
    if not in_place:
        path.rename(old)  # so that the new one has another inode
    write_outlines(raw, kind, outlines)
    old.unlink(missing_ok=True)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
