"""Name the tool of a file of annotations that is not read, and say how its annotations can be packed all the same."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Any

from packer.annotations.coco import ONE_PICTURE
from packer.annotations.json_values import table_or_none
from packer.annotations.yolo_lines import lines_of, numbers_of
from packer.annotations.yolo_points import are_keypoints
from packer.errors import BadPair

SUFFIXES = (".json", ".csv", ".vott", ".txt")
MOST_LINES = 20
"""The lines of a text that are looked at."""
VIA = "is of VIA (VGG Image Annotator), which is not read; open it in VIA and export the annotations as COCO"
VOTT = "is of VoTT, which is not read; convert it to COCO"
KEYPOINTS = "has boxes with keypoints of YOLO, and no outlines; a label needs outlines"
DOTA = "has oriented boxes of DOTA, and no outlines; a label needs outlines"
_VIA_COLUMNS = {"region_shape_attributes", "region_attributes"}
_VOTT_COLUMNS = ["image", "xmin", "ymin", "xmax", "ymax", "label"]
_DOTA_HEADS = ("imagesource:", "gsd:")


def why_unread(path: str, data: bytes) -> str | None:
    """Return which tool wrote a file that is not read, and what to do; None if it is not known."""
    if path.endswith((".json", ".vott")):
        return _of_table(table_or_none(data) or {})
    try:
        lines = lines_of(data)[:MOST_LINES]
    except BadPair:
        return None
    return _of_columns(lines) if path.endswith(".csv") else _of_numbers(lines)


def _of_table(table: dict[str, Any]) -> str | None:
    first = next(iter(table.values()), None)
    entry = first if isinstance(first, dict) else {}
    if "_via_settings" in table or "_via_img_metadata" in table or {"filename", "regions"} <= entry.keys():
        return VIA
    if (
        isinstance(project := table.get("project"), dict)
        and {"vid_list", "file"} & {*table, *project}
        and "view" in table
    ):
        return VIA
    if {"asset", "regions"} <= table.keys() or ("assets" in table and {"tags", "visitedAssets"} & table.keys()):
        return VOTT
    return ONE_PICTURE if isinstance(table.get("image"), dict) and "annotations" in table else None


def _of_columns(lines: Sequence[str]) -> str | None:
    columns = next(csv.reader(lines[:1]), [])
    if set(columns) >= _VIA_COLUMNS:
        return VIA
    return VOTT if columns == _VOTT_COLUMNS else None


def _of_numbers(lines: Sequence[str]) -> str | None:
    objects = [line for line in lines if not line.startswith(_DOTA_HEADS)]
    if objects and all(map(_is_oriented, objects)):
        return DOTA
    try:
        numbers = [numbers_of(line) for line in objects]
    except BadPair:
        return None
    return KEYPOINTS if numbers and are_keypoints(numbers) else None


def _is_oriented(line: str) -> bool:
    """Check for four points, the name of a class, and perhaps whether it is difficult."""
    words = line.split()
    try:
        return len(words) in (9, 10) and len(numbers_of(" ".join(words[:8]))) == 8 and not _is_number(words[8])
    except BadPair:
        return False


def _is_number(word: str) -> bool:
    try:
        return bool(len(numbers_of(word)))
    except BadPair:
        return False
