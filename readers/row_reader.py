"""`RowReader`: rows of a pack as one array of images and one of labels, in memory that the caller provides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from readers.batch_memory import Lease
from readers.collate import different_sizes
from readers.contract.errors import RequestError
from readers.contract.fields import IMAGE, LABEL, Field
from readers.contract.manifest import Manifest
from readers.contract.onehot import collapse, expand
from readers.formats.shard import Shard
from readers.pack import Pack
from readers.windows import BatchWindows, CopyPixels

Arrays = tuple[NDArray[Any], NDArray[Any]]
LabelForm = Literal["onehot", "index"]


class ShardRows(NamedTuple):
    """The rows of a batch that lie in one shard."""

    shard: Shard
    targets: list[int]
    """Their indices in the batch."""
    rows: list[int]
    """Their indices in the shard."""


class RowReader:
    """Reads rows of a pack, with labels in the form that is wanted. It has no state: threads may share it."""

    def __init__(self, pack: Pack, label: LabelForm) -> None:
        self._pack = pack
        self.image, self.label = pack.manifest.field(IMAGE), _delivered(pack, label)
        self._stored = pack.manifest.field(LABEL)
        self._ignored = _ignored(self.label)
        self._copy_label: CopyPixels = np.copyto
        if label != self._stored.encoding:
            self._copy_label = _expand if label == "onehot" else _collapse

    @property
    def native(self) -> bool:
        """True if each row has a size of its own."""
        return self.image.native

    @property
    def expands(self) -> bool:
        """True if labels are stored as indices and delivered one-hot."""
        return self._copy_label is _expand

    def as_stored(self) -> RowReader:
        """Return a reader of the same rows whose labels are in the stored form."""
        return RowReader(self._pack, label_form(self._pack.manifest, None))

    def read(self, rows: Sequence[int], lease: Lease, windows: BatchWindows | None = None) -> Arrays:
        """Return the rows in this order. Native rows must all have the same size, or windows of one size."""
        groups = self._groups(rows)
        size = self._size(rows, windows)
        images = lease((len(rows), *self.image.row_shape(*size)), self.image.dtype)
        labels = lease((len(rows), *self.label.row_shape(*size)), self.label.dtype)
        for group in groups:
            _fill(group, self.image, np.copyto, images, windows, windows.pad if windows else 0)
            _fill(group, self._stored, self._copy_label, labels, windows, self._ignored)
        return images, labels

    def sizes(self, rows: Sequence[int]) -> NDArray[np.int64]:
        """Return the height and width of each row."""
        if self.image.size is not None:
            return np.broadcast_to(np.array(self.image.size), (len(rows), 2))
        located = ((self._pack.shard(shard), row) for shard, row in self._pack.table.locate_all(rows))
        return np.array([shard.size(row) for shard, row in located], np.int64)

    def row_bytes(self, row: int) -> int:
        """Return the bytes of a stored row."""
        ((height, width),) = self.sizes([row]).tolist()
        return self.image.row_bytes_at(height, width) + self._stored.row_bytes_at(height, width)

    def prefetch(self, rows: Iterable[int]) -> None:
        """Ask the kernel to read rows from the disk before they are needed, in the order in which they lie there."""
        for shard, _, inside in self._groups(sorted(rows)):
            shard.prefetch((self.image, self._stored), inside)

    def drop(self, rows: Iterable[int]) -> None:
        """Take rows out of the page cache: they are not needed again soon."""
        for shard, _, inside in self._groups(sorted(rows)):
            shard.drop((self.image, self._stored), inside)

    def _groups(self, rows: Sequence[int]) -> list[ShardRows]:
        """Return the rows by shard."""
        groups: dict[int, tuple[list[int], list[int]]] = {}
        for target, (shard, row) in enumerate(self._pack.table.locate_all(rows)):
            targets, inside = groups.setdefault(shard, ([], []))
            targets.append(target)
            inside.append(row)
        return [ShardRows(self._pack.shard(shard), targets, inside) for shard, (targets, inside) in groups.items()]

    def _size(self, rows: Sequence[int], windows: BatchWindows | None) -> tuple[int, int]:
        size = windows.size if windows and windows.size else self.image.size
        if size is not None:
            return size
        sizes = list(map(tuple, self.sizes(rows).tolist()))
        if len(set(sizes)) > 1:
            raise RequestError(
                f"a batch of {len(rows)} rows has pictures of {different_sizes(sizes)}: give loader() crop=(H, W), "
                "or use batch_size=1"
            )
        height, width = sizes[0]
        return height, width


def label_form(manifest: Manifest, wanted: str | None) -> LabelForm:
    """Return the form in which labels are delivered, by default the stored one."""
    form = manifest.field(LABEL).encoding if wanted is None else wanted
    if form == "onehot":
        return "onehot"
    if form == "index":
        return "index"
    raise RequestError(f'label={wanted!r} is neither "onehot" nor "index"')


def _fill(
    group: ShardRows,
    field: Field,
    copy: CopyPixels,
    out: NDArray[Any],
    windows: BatchWindows | None,
    padding: float,
) -> None:
    if windows is None and copy is np.copyto and not field.native:
        group.shard.read(field.name, group.rows, out, group.targets)
        return
    for target, row in zip(group.targets, group.rows, strict=True):
        pixels = group.shard.pixels(field, row)
        if windows is None:
            copy(out[target], pixels)
        else:
            windows.copy(target, pixels, out[target], copy, padding)


def _delivered(pack: Pack, form: LabelForm) -> Field:
    """Return the label field in the form in which it is delivered."""
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
    """Return the number of a label's pixels outside of the picture."""
    return 0 if label.encoding == "onehot" else int(np.iinfo(label.dtype).max)
