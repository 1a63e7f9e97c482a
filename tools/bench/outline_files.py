"""The same outlines as a file of each format, for a bench of how long a label takes."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from itertools import chain
from typing import Any

from PIL import Image, TiffImagePlugin, TiffTags

from packer.annotations import coco, geojson
from packer.annotations.annotation import AnnotatedPicture
from packer.annotations.formats import picture_format
from packer.annotations.whole_pictures import WHOLE, read_whole
from readers.contract.tiles import Size

Points = list[list[float]]
CATEGORY = "construction--flat--road"
LONG = ("labelme", "label_studio", "geojson")
"""Formats whose tools write all digits of a coordinate. The others have two."""
PIXEL_SCALE, TIEPOINT = 33550, 33922
"""Tags of a GeoTIFF."""


def readers_of(rings: list[Points], size: Size) -> dict[str, Callable[[], AnnotatedPicture]]:
    """Return for each format a function that reads these outlines from the bytes of a file."""
    short = [[[round(x, 2), round(y, 2)] for x, y in ring] for ring in rings]
    texts = {name: text(rings if name in LONG else short, size).encode() for name, text in _TEXTS.items()}
    readers = {name: _reader(name, data) for name, data in texts.items()}
    tiff, read = _tiff(size), readers[geojson.NAME]
    readers[geojson.NAME] = lambda: geojson.place(read(), tiff)
    facts = json.dumps({"file_name": "a.jpg", "height": size[0], "width": size[1]}).encode()
    flat = (list(chain.from_iterable(ring)) for ring in short)
    items = [json.dumps({"category_id": 1, "segmentation": [numbers]}).encode() for numbers in flat]
    return {coco.NAME: lambda: coco.read(facts, items, {1: CATEGORY}), **readers}


def _reader(name: str, data: bytes) -> Callable[[], AnnotatedPicture]:
    if name in WHOLE:
        return lambda: read_whole(name, data)
    known = picture_format(name)
    assert known.knows(data), name
    return lambda: known.read(data, ())


def _labelme(rings: list[Points], size: Size) -> str:
    shapes = [{"label": CATEGORY, "shape_type": "polygon", "points": ring} for ring in rings]
    return json.dumps({"imagePath": "a.jpg", "imageHeight": size[0], "imageWidth": size[1], "shapes": shapes})


def _cityscapes(rings: list[Points], size: Size) -> str:
    objects = [{"label": "car", "polygon": ring} for ring in rings]
    return json.dumps({"imgHeight": size[0], "imgWidth": size[1], "objects": objects})


def _mapillary(rings: list[Points], size: Size) -> str:
    objects = [{"label": CATEGORY, "polygon": ring} for ring in rings]
    return json.dumps({"height": size[0], "width": size[1], "objects": objects})


def _ade20k(rings: list[Points], size: Size) -> str:
    polygons = ({"x": [x for x, _ in ring], "y": [y for _, y in ring]} for ring in rings)
    objects = [{"name": CATEGORY, "parts": {"part_level": 0}, "polygon": polygon} for polygon in polygons]
    return json.dumps({"annotation": {"imsize": [*size, 3], "scene": [], "object": objects}})


def _labelme_web(rings: list[Points], size: Size) -> str:
    points = ("".join(f"<pt><x>{x}</x><y>{y}</y></pt>" for x, y in ring) for ring in rings)
    objects = "".join(f"<object><name>{CATEGORY}</name><polygon>{each}</polygon></object>" for each in points)
    return f"<annotation><filename>a.jpg</filename>{objects}</annotation>"


def _voc(rings: list[Points], size: Size) -> str:
    points = ("".join(f"<x{i}>{x}</x{i}><y{i}>{y}</y{i}>" for i, (x, y) in enumerate(ring, 1)) for ring in rings)
    objects = "".join(f"<object><name>{CATEGORY}</name><polygon>{each}</polygon></object>" for each in points)
    return f"<annotation><filename>a.jpg</filename>{objects}</annotation>"


def _geojson(rings: list[Points], size: Size) -> str:
    ground = ([[x, size[0] - y] for x, y in [*ring, ring[0]]] for ring in rings)
    geometries = ({"type": "Polygon", "coordinates": [ring]} for ring in ground)
    features = [{"type": "Feature", "properties": {"class": CATEGORY}, "geometry": each} for each in geometries]
    return json.dumps({"type": "FeatureCollection", "features": features})


def _supervisely(rings: list[Points], size: Size) -> str:
    figures = ({"exterior": ring, "interior": []} for ring in rings)
    objects = [{"geometryType": "polygon", "classTitle": CATEGORY, "points": each} for each in figures]
    return json.dumps({"size": {"height": size[0], "width": size[1]}, "objects": objects})


def _yolo(rings: list[Points], size: Size) -> str:
    shares = (" ".join(f"{x / size[1]:.6f} {y / size[0]:.6f}" for x, y in ring) for ring in rings)
    return "".join(f"0 {each}\n" for each in shares)


def _cvat(rings: list[Points], size: Size) -> str:
    points = (";".join(f"{x:.2f},{y:.2f}" for x, y in ring) for ring in rings)
    objects = "".join(f'<polygon label="{CATEGORY}" points="{each}" z_order="0"></polygon>' for each in points)
    return f'<image id="0" name="a.jpg" width="{size[1]}" height="{size[0]}">{objects}</image>'


def _label_studio(rings: list[Points], size: Size) -> str:
    shares = ([[100 * x / size[1], 100 * y / size[0]] for x, y in ring] for ring in rings)
    values = ({"points": points, "polygonlabels": [CATEGORY]} for points in shares)
    sizes = {"original_height": size[0], "original_width": size[1]}
    results: list[dict[str, Any]] = [{"type": "polygonlabels", "value": value, **sizes} for value in values]
    return json.dumps({"data": {"image": "/a.jpg"}, "annotations": [{"result": results}]})


_TEXTS: dict[str, Callable[[list[Points], Size], str]] = {
    "labelme": _labelme,
    "cityscapes": _cityscapes,
    "mapillary": _mapillary,
    "ade20k_parts": _ade20k,
    "labelme_web": _labelme_web,
    "voc": _voc,
    "geojson": _geojson,
    "supervisely": _supervisely,
    "yolo": _yolo,
    "cvat": _cvat,
    "label_studio": _label_studio,
}
"""The file of each format but COCO, whose annotations are items of a file of many pictures."""


def _tiff(size: Size) -> bytes:
    """Return a GeoTIFF whose pixels are a metre wide."""
    tags = TiffImagePlugin.ImageFileDirectory_v2()
    tags[PIXEL_SCALE], tags[TIEPOINT] = (1.0, 1.0, 0.0), (0.0, 0.0, 0.0, 0.0, float(size[0]), 0.0)
    tags.tagtype[PIXEL_SCALE] = tags.tagtype[TIEPOINT] = TiffTags.DOUBLE
    file = io.BytesIO()
    Image.new("L", (size[1], size[0])).save(file, "TIFF", tiffinfo=tags)
    return file.getvalue()
