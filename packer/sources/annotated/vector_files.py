"""Shapefiles and GeoPackages as GeoJSON: GDAL reads them, by pyogrio of the extra `vectors`, in a process of its own.

The process gets the bytes of the files and no path. So a file can neither name others nor change while it is read.
"""

from __future__ import annotations

import io
import json
import zipfile
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from packer.annotations.geojson import PROPERTIES
from packer.annotations.well_known_binary import geometry_of
from packer.errors import BadPair, UsageError, library_of_extra
from packer.pairs.template import SHAPEFILE, VECTORS
from packer.sources.files.folder import SHAPEFILE_PARTS
from packer.sources.library_process import ask

NEEDED = "shapefiles and GeoPackages are read by pyogrio: pip install 'segpack[vectors]'"
RULE = "vectors 1"
_MARKS = {SHAPEFILE: b"\0\0\x27\x0a", ".gpkg": b"SQLite format 3\0"}
"""The first bytes. By others, GDAL would choose another format, which may read further files."""
_UNFINISHED = "-wal"
_MOST_NAMED = 8


def is_vector(path: str) -> bool:
    """Return whether GDAL reads a file of annotations, by its suffix."""
    return path.lower().endswith(VECTORS)


@lru_cache(maxsize=1)
def library() -> ModuleType:
    """Return pyogrio. Raise UsageError if it is not installed."""
    return library_of_extra("pyogrio", NEEDED)


def vector_tools() -> tuple[str, ...]:
    """Return the versions of pyogrio and of GDAL in its wheel, for a recipe."""
    try:
        gdal = ".".join(map(str, library().__gdal_version__))
    except UsageError:
        return ("pyogrio is not installed",)
    return (f"pyogrio {library().__version__} with GDAL {gdal}, {RULE}",)


def as_geojson(files: Mapping[str, bytes]) -> bytes:
    """Return the features in the first of these files, which has the others next to it."""
    path = next(iter(files))
    suffix = path[path.rindex(".") :].lower()
    if not files[path].startswith(_MARKS[suffix]):
        raise BadPair("is not a shapefile" if suffix == SHAPEFILE else "is not a GeoPackage")
    lacking = [part for part in SHAPEFILE_PARTS[:2] if not any(name.lower().endswith(part) for name in files)]
    if suffix == SHAPEFILE and lacking:
        raise BadPair(f"lacks the file next to it that ends with {' and '.join(lacking)}")
    named = {name[name.rindex(".") :].lower(): data for name, data in files.items()}
    answers = ask(VectorBytes(named), "features")
    head = next(answers)
    return json.dumps({"type": "FeatureCollection", **head, "features": list(answers)}).encode()


def check_finished(raw: Path, path: str) -> None:
    """Refuse a GeoPackage with changes that another program has not written into it yet."""
    rest = raw / f"{path}{_UNFINISHED}"
    if rest.is_file() and rest.stat().st_size:
        raise BadPair(f"{path}: has changes in {rest.name} that are not in it yet; close it in the other program")


@dataclass(frozen=True)
class VectorBytes:
    """The bytes of a file and of those next to it, by their suffixes, which another process reads."""

    files: Mapping[str, bytes]

    def features(self) -> Iterator[Any]:
        """Yield the other members of a collection of GeoJSON, then each feature."""
        pyogrio = library()
        data = self._one_file()
        layers = [str(name) for name, kind in pyogrio.list_layers(data) if kind is not None]
        if len(layers) != 1:
            named = ", ".join(layers[:_MOST_NAMED])
            raise BadPair(f"has {len(layers)} layers of shapes{named and ': '}{named}; write one of them to a file")
        names = [str(name) for name in pyogrio.read_info(data, layer=layers[0])["fields"]]
        kept = [name for name in names if name.lower() in PROPERTIES]
        facts, _, shapes, columns = pyogrio.raw.read(data, layer=layers[0], columns=kept, force_2d=True)
        system = facts["crs"]
        if system is not None and not system.startswith("EPSG:"):
            raise BadPair(f"has a coordinate system without an EPSG code, {system[:60]}; assign or convert it")
        crs = {} if system is None else {"crs": {"type": "name", "properties": {"name": system}}}
        yield crs
        for number, shape in enumerate(shapes):
            values = {str(name): _plain(column[number]) for name, column in zip(facts["fields"], columns, strict=True)}
            geometry = None if shape is None else geometry_of(shape)
            yield {"type": "Feature", "properties": values, "geometry": geometry}

    @property
    def _is_package(self) -> bool:
        return SHAPEFILE not in self.files

    def _one_file(self) -> bytes:
        """Return the bytes that GDAL reads: of a shapefile an archive of its files."""
        if self._is_package:
            return next(iter(self.files.values()))
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as file:
            for suffix, data in self.files.items():
                file.writestr(f"shapes{suffix}", data)
        return archive.getvalue()

    def to_text(self) -> str:
        return json.dumps({suffix: b64encode(data).decode() for suffix, data in self.files.items()})

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> VectorBytes:
        return cls({suffix: b64decode(text) for suffix, text in facts.items()})


def _plain(number: Any) -> Any:
    """Return a property as JSON has it. Tables of shapefiles have whole numbers as numbers with a point."""
    plain = number.item() if hasattr(number, "item") else number
    if isinstance(plain, float):
        return int(plain) if plain.is_integer() else None
    return plain if isinstance(plain, (str, int)) else None
