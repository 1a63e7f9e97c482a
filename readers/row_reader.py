"""`Reader`: rows of a pack as one array of images and one of labels, in memory that the caller leases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.batch_memory import Lease
from readers.collate import named_sizes
from readers.contract.errors import RequestError
from readers.contract.fields import IMAGE, LABEL, Field
from readers.contract.onehot import collapse, expand
from readers.crop import Put, Windows
from readers.formats.shard import Shard
from readers.pack import Pack

Arrays = tuple[NDArray[Any], NDArray[Any]]
Group = tuple[Shard, list[int], list[int]]
"""Rows of a batch that lie in one shard: their places in the batch, and in the shard."""


class Reader:
    """Reads rows of a pack, with labels in the form that is wanted. It has no state: threads may share it."""

    def __init__(self, pack: Pack, label: str) -> None:
        self._pack = pack
        self.image, self.label = pack.manifest.field(IMAGE), _delivered(pack, label)
        self._stored = pack.manifest.field(LABEL)
        self._ignored = _ignored(self.label)
        self._put: Put = np.copyto
        if label != self._stored.encoding:
            self._put = _expand if label == "onehot" else _collapse

    @property
    def native(self) -> bool:
        """Whether each row has a size of its own."""
        return self.image.native

    @property
    def expands(self) -> bool:
        """Whether labels are stored as indices and delivered as planes."""
        return self._put is _expand

    def as_stored(self) -> Reader:
        """The same rows, labels as they are stored."""
        return Reader(self._pack, self._stored.encoding)

    def read(self, rows: Sequence[int], lease: Lease, windows: Windows | None = None) -> Arrays:
        """The rows, in this order; where they are native, all must be of one size, or have windows of one."""
        groups = self._groups(rows)
        size = self._size(rows, windows)
        images = lease((len(rows), *self.image.row_shape(*size)), self.image.dtype)
        labels = lease((len(rows), *self.label.row_shape(*size)), self.label.dtype)
        for group in groups:
            _fill(group, self.image, np.copyto, images, windows, windows.pad if windows else 0)
            _fill(group, self._stored, self._put, labels, windows, self._ignored)
        return images, labels

    def sizes(self, rows: Sequence[int]) -> NDArray[np.int64]:
        """Height and width of each row."""
        if self.image.size is not None:
            return np.broadcast_to(np.array(self.image.size), (len(rows), 2))
        found = ((self._pack.shard(shard), place) for shard, place in self._pack.table.locate_all(rows))
        return np.array([shard.size(place) for shard, place in found], np.int64)

    def row_bytes(self, row: int) -> int:
        """The bytes of a stored row."""
        ((height, width),) = self.sizes([row]).tolist()
        return self.image.row_bytes_at(height, width) + self._stored.row_bytes_at(height, width)

    def want(self, rows: Iterable[int]) -> None:
        """Have the rows read from the disk before they are needed, in the order in which they lie there."""
        for shard, _, places in self._groups(sorted(rows)):
            shard.want((self.image, self._stored), places)

    def let_go(self, rows: Iterable[int]) -> None:
        """The rows are not needed again soon."""
        for shard, _, places in self._groups(sorted(rows)):
            shard.let_go((self.image, self._stored), places)

    def _groups(self, rows: Sequence[int]) -> list[Group]:
        """The rows by shard."""
        groups: dict[int, tuple[list[int], list[int]]] = {}
        for slot, (shard, place) in enumerate(self._pack.table.locate_all(rows)):
            slots, places = groups.setdefault(shard, ([], []))
            slots.append(slot)
            places.append(place)
        return [(self._pack.shard(shard), slots, places) for shard, (slots, places) in groups.items()]

    def _size(self, rows: Sequence[int], windows: Windows | None) -> tuple[int, int]:
        size = windows.size if windows and windows.size else self.image.size
        if size is not None:
            return size
        sizes = list(map(tuple, self.sizes(rows).tolist()))
        if len(set(sizes)) > 1:
            raise RequestError(
                f"a batch of {len(rows)} rows has pictures of {named_sizes(sizes)}: give loader() crop=(H, W), "
                "or take batch_size=1"
            )
        height, width = sizes[0]
        return height, width


def _fill(group: Group, field: Field, put: Put, out: NDArray[Any], windows: Windows | None, padding: float) -> None:
    shard, slots, places = group
    if windows is None and put is np.copyto and not field.native:
        shard.read(field.name, places, out, slots)
        return
    for slot, place in zip(slots, places, strict=True):
        pixels = shard.pixels(field, place)
        if windows is None:
            put(out[slot], pixels)
        else:
            windows.put(slot, pixels, out[slot], put, padding)


def _delivered(pack: Pack, form: str) -> Field:
    """The label field as it is delivered."""
    stored = pack.manifest.field(LABEL)
    classes = pack.manifest.classes
    if form == "onehot":
        return Field(LABEL, "|u1", (len(classes), *stored.shape[-2:]), form)
    return Field(LABEL, classes.index_dtype, stored.shape[-2:], form)


def _expand(out: NDArray[Any], index: NDArray[Any]) -> None:
    expand(index, len(out), out)


def _collapse(out: NDArray[Any], planes: NDArray[Any]) -> None:
    collapse(planes, out.dtype.str, out)


def _ignored(label: Field) -> int:
    """What a label has where the picture ends."""
    return 0 if label.encoding == "onehot" else int(np.iinfo(label.dtype).max)
