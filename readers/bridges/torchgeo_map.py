"""TorchGeo: a pack of pictures with a place as a GeoDataset, which its samplers ask for windows by coordinates.

    from torchgeo.datamodules import GeoDataModule
    from readers.bridges.torchgeo_map import PackMap

    data = GeoDataModule(PackMap, batch_size=8, patch_size=256, length=1000, num_workers=2, root="out")
    train = PackMap("out", "train")
    sampler = RandomGeoSampler(train, size=256, length=1000)  # with stack_samples as collate_fn of the DataLoader
    both = train & Elevation("dem/")  # any GeoDataset; the pack comes first

Samples are {"image": float32, "mask": long, "crs", "bounds"}, and other fields by their names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import PurePosixPath
from re import VERBOSE, match
from typing import Any, NamedTuple

import geopandas as gpd
import numpy as np
import pandas as pd
import shapely
import torch
from numpy.typing import NDArray
from pyproj import CRS
from torchgeo.datasets import GeoDataset
from torchgeo.datasets.utils import disambiguate_timestamp

from readers.bridges.torchgeo import PackSamples, Sample, Transforms
from readers.contract.errors import RequestError
from readers.contract.place import GEO, Place
from readers.contract.tiles import Tile, picture_of

SAME = 0.001
"""Resolutions that differ by a smaller share count as one."""


class Corner(NamedTuple):
    """The left and top of a row in the world, and its height and width in pixels that show its picture."""

    left: float
    top: float
    height: int
    width: int


class PackMap(PackSamples, GeoDataset):
    """The rows of a split by their place. Tiles of a picture are read as the picture, if none is missing.

    Pixels are not warped: all rows must have one coordinate system and one resolution, which other data sets take over
    if this one comes first in `a & b`. Pixels outside of all rows are 0, and ignored in the mask. A subclass may read
    dates from keys, as RasterDataset does from file names: by `filename_regex` and `date_format`.
    """

    filename_regex = ".*"
    date_format = "%Y%m%d"

    def __init__(
        self, root: str | os.PathLike[str], split: str | None = None, transforms: Transforms = None, **options: Any
    ) -> None:
        self.open_pack(root, split, options)
        self.paths, self.transforms = self.data.root, transforms
        places = [self._place(row) for row in range(len(self.data))]
        steps = np.array([place.spacing[::-1] for place in places])
        if len({place.crs for place in places}) > 1 or np.ptp(steps / steps[0], axis=0).max() > SAME:
            raise RequestError(f"{root}: rows have several coordinate systems or resolutions; pack each by itself")
        self._res = (float(steps[0][0]), float(steps[0][1]))
        self._corners = np.array([self._corner(row, place) for row, place in enumerate(places)])
        entries = [*self._entries()]
        times = pd.IntervalIndex.from_tuples([self._times(name) for name, _ in entries], "both", name="datetime")
        boxes = [self._outline(rows) for _, rows in entries]
        facts = {"key": [name for name, _ in entries], "rows": [rows for _, rows in entries]}
        self.index = gpd.GeoDataFrame(facts, index=times, geometry=boxes, crs=CRS.from_user_input(places[0].crs))

    def _place(self, row: int) -> Place:
        place = self.data.place(row)
        if place is None or place.kind != GEO or not place.crs:
            raise RequestError(
                f"{self.data.key(row)}: has no place with the code of a coordinate system; use PackTiles"
            )
        (across, turned, _), (turned_too, down, _) = place.matrix
        if turned or turned_too or across <= 0 or down >= 0:
            raise RequestError(f"{self.data.key(row)}: north is not up; warp it before it is packed")
        return place

    def _corner(self, row: int, place: Place) -> Corner:
        """Return where a row is, without padding behind the end of its picture."""
        key, (height, width) = self.data.key(row), self.data.size(row)
        if picture_of(key) != key:
            tile = Tile.of(key)
            height = min(height, tile.size[0] - tile.origin[0])
            width = min(width, tile.size[1] - tile.origin[1])
        left, top = place.at(0, 0)
        return Corner(left, top, height, width)

    def _entries(self) -> Iterator[tuple[str, NDArray[np.int64]]]:
        """Yield the key and the rows of each picture, or of each tile of a picture with missing tiles."""
        pictures: dict[str, list[int]] = {}
        for row in range(len(self.data)):
            pictures.setdefault(picture_of(self.data.key(row)), []).append(row)
        for name, rows in pictures.items():
            covered = shapely.union_all([self._outline([row]) for row in rows])
            whole = covered.area > 0.999999 * covered.envelope.area
            for part in [rows] if whole else [[row] for row in rows]:
                yield name, np.array(part)

    def _outline(self, rows: Any) -> Any:
        left, top, height, width = self._corners[rows].T
        return shapely.box(
            left.min(), (top - height * self._res[1]).min(), (left + width * self._res[0]).max(), top.max()
        )

    def _times(self, key: str) -> tuple[Any, Any]:
        date = match(self.filename_regex, PurePosixPath(key).name, VERBOSE)
        names = {} if date is None else date.groupdict()
        if "date" in names:
            names |= {"start": names["date"], "stop": names["date"]}
        if {"start", "stop"} <= names.keys():
            begin, end = (disambiguate_timestamp(names[name], self.date_format) for name in ("start", "stop"))
            return begin[0], end[1]
        return pd.Timestamp.min, pd.Timestamp.max

    @property
    def crs(self) -> Any:
        return self.index.crs

    @crs.setter
    def crs(self, new: Any) -> None:
        if new != self.index.crs:
            raise RequestError(f"{self.paths}: is not warped to {new}; put it first, as in `packed & other`")

    @property
    def res(self) -> tuple[float, float]:
        return self._res

    @res.setter
    def res(self, new: Any) -> None:
        if not np.allclose(new, self._res):
            raise RequestError(f"{self.paths}: is not scaled to {new}; put it first, as in `packed & other`")

    def __getitem__(self, query: Any) -> Sample:
        x, y, t = self._disambiguate_slice(query)
        self.res = (x.step, y.step)
        near = self.index.sindex.query(shapely.box(x.start, y.start, x.stop, y.stop), predicate="intersects")
        when = self.index.index.overlaps(pd.Interval(t.start, t.stop))
        entries = [entry for entry in np.sort(near) if when[entry]][:: t.step]
        rows = [row for entry in entries for row in self.index["rows"].iloc[entry]]
        tensors = self._read(rows, x, y) if rows else None
        if tensors is None:
            raise IndexError(f"query: {query} not found in index with bounds: {self.bounds}")
        sample = {"crs": self.crs, "bounds": query, **self.sample_of(tensors)}
        return sample if self.transforms is None else self.transforms(sample)

    def _read(self, rows: list[int], x: slice, y: slice) -> list[torch.Tensor] | None:
        """Return the window of these rows. The first row that shows a pixel is the one that is taken."""
        size = np.rint([(y.stop - y.start) / y.step, (x.stop - x.start) / x.step]).astype(int)
        left, top, *sides = self._corners[rows].T
        starts = np.rint([(top - y.stop) / y.step, (x.start - left) / x.step]).astype(int).T
        begins, ends = np.maximum(0, -starts), np.minimum(size, np.array(sides, int).T - starts)
        shown = np.flatnonzero((begins < ends).all(1))
        made: list[torch.Tensor] | None = None
        for number in reversed(shown.tolist()):
            start, begin, end = starts[number], begins[number], ends[number]
            if made is None:
                made = [*self.data.window(rows[number], start.tolist(), size.tolist())]
                continue
            parts = self.data.window(rows[number], (start + begin).tolist(), (end - begin).tolist())
            for whole, part in zip(made, parts, strict=True):
                whole[..., begin[0] : end[0], begin[1] : end[1]] = part
        return made
