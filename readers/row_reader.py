"""`RowReader`: rows of a pack as one array for each field, in memory that the caller provides."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from readers.batch_memory import Lease
from readers.collate import different_sizes
from readers.contract.errors import RequestError
from readers.contract.fields import LABEL, RAW, Field, Sides
from readers.contract.kinds import FLAG
from readers.contract.tile_grid import Area
from readers.delivered import Delivered
from readers.formats.shard import Shard, gather
from readers.pack import Pack
from readers.statistics import picture_of
from readers.tone import BatchTones
from readers.windows import BatchPicture, BatchWindows, ReadPart

Arrays = tuple[NDArray[Any], ...]
"""An array for each field."""


class ShardRows(NamedTuple):
    """The rows of a batch that are in one shard."""

    shard: Shard
    targets: list[int]
    """Their indices in the batch."""
    rows: list[int]
    """Their indices in the shard."""


class RowReader:
    """Reads fields of rows of a pack, in a fixed order and form. It has no state: threads may share it."""

    def __init__(self, pack: Pack, fields: Sequence[Delivered]) -> None:
        self.pack = pack
        self.fields = tuple(fields)
        self._stored = tuple(field.stored for field in fields if field.is_stored)
        self._delivered = tuple(field.field for field in fields)
        self._size = self._stored[0].size
        self._valid = self._picture_and_mask()

    def _picture_and_mask(self) -> tuple[int, int] | None:
        """Return the numbers of the picture and of its valid mask among the fields; None if no mask is asked for."""
        masks = [number for number, field in enumerate(self._delivered) if field.kind == FLAG and field.shape]
        picture = picture_of(self._delivered)
        return (self._delivered.index(picture), masks[0]) if masks and picture is not None else None

    @property
    def native(self) -> bool:
        """True if each row has a size of its own."""
        return self._size is None

    @property
    def size(self) -> Sides | None:
        """The sides of every row; None if each has its own."""
        return self._size

    @property
    def sides(self) -> tuple[int | None, ...]:
        """The sides of a row, three of volumes; None where rows differ."""
        return self._stored[0].sides

    @property
    def unpacks(self) -> bool:
        """True if a field is not stored raw."""
        return any(field.is_encoded for field in self._stored)

    def as_stored(self, name: str) -> RowReader:
        """Return a reader of the same fields, this one in its stored form."""
        fields = [delivered.as_stored() if delivered.field.name == name else delivered for delivered in self.fields]
        return RowReader(self.pack, fields)

    def read(
        self,
        rows: Sequence[int],
        lease: Lease,
        windows: BatchWindows | None = None,
        tones: BatchTones | None = None,
    ) -> Arrays:
        """Return the rows in this order, an array for each field. Native rows must all have the same size, or windows
        of one size. The picture `tones.tone.field` gets the tones."""
        groups = self._groups(rows)
        size = self._common_size(rows, windows)
        toned = None if tones is None else tones.tone.field
        dtypes = [tones.tone.dtype if tones and field is toned else field.dtype for field in self._delivered]
        shapes = [(len(rows), *field.row_shape(*size)) for field in self._delivered]
        arrays = tuple(lease(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True))
        for field, out in zip(self.fields, arrays, strict=True):
            if tones is not None and field.field is toned:
                pictures = self._fill_toned(groups, field, out, windows, tones)
            elif field.is_stored:
                _fill(groups, field, out, windows)
            elif not field.field.shape:
                _mark(groups, out)
        if self._valid is not None:
            picture, mask = self._valid
            _mark_valid(self._delivered[picture], arrays[picture] if tones is None else pictures, arrays[mask])
        return tuple(map(as_series, self._delivered, arrays))

    def _fill_toned(
        self,
        groups: Sequence[ShardRows],
        field: Delivered,
        out: NDArray[Any],
        windows: BatchWindows | None,
        tones: BatchTones,
    ) -> NDArray[Any]:
        """Read a picture with its tones: at once where windows lie raw in files, else by way of the stored pixels.
        Return these, if others need them."""
        raw = field.stored.encoding == RAW and not field.stored.optional and self._valid is None
        in_files = windows.in_files(_pictures(groups, field), out) if raw and windows is not None else None
        if in_files is not None and tones.copy_all(in_files, out):
            return out
        if self._valid is not None or windows is None:
            pixels = np.empty(out.shape, field.field.dtype)
            _fill(groups, field, pixels, windows)
            for target, picture in enumerate(pixels):
                tones.of_row(target)(out[target], picture)
            return pixels
        for shard, targets, rows in groups:
            for target, row in zip(targets, rows, strict=True):
                tone = tones.of_row(target)
                if not shard.has(field.stored.name):
                    out[target] = tone.padding(field.field.fill_number)
                    continue
                read, how = partial(shard.window, field.stored, row), replace(field.how, tone=tone)
                windows.copy(target, shard.size(row), read, out[target], how)
        return out

    def parts(self, field: Delivered, rows: Sequence[int]) -> list[ReadPart | None]:
        """Return for each row a function that reads a part of a field; None for a row that lacks it."""
        located, name = list(self.pack.table.locate_all(rows)), field.stored.name
        numbers = dict.fromkeys(number for number, _ in located)
        shards = dict(zip(numbers, self.pack.shards(numbers), strict=True))
        placed = ((shards[number], row) for number, row in located)
        return [partial(shard.window, field.stored, row) if shard.has(name) else None for shard, row in placed]

    def sizes(self, rows: Sequence[int]) -> NDArray[np.int64]:
        """Return the sides of each row."""
        if self._size is not None:
            return np.broadcast_to(np.array(self._size), (len(rows), len(self._size)))
        located = ((self.pack.shard(shard), row) for shard, row in self.pack.table.locate_all(rows))
        return np.array([shard.size(row) for shard, row in located], np.int64)

    def row_bytes(self, row: int, window: Sides | None = None) -> int:
        """Return the raw bytes of a row. If a window is read, those that it may touch."""
        (sides,) = self.sizes([row]).tolist()
        return sum(field.row_bytes_at(*_read_for(field, sides, window)) for field in self._stored)

    @property
    def reads_parts(self) -> bool:
        """True if only parts of rows are read for windows, of any field."""
        return any(field.is_read_in_parts for field in self._stored)

    def are_near(self, rows: Sequence[int]) -> bool:
        """Return whether the shards of all these rows can be opened without fetching them."""
        return all(map(self.pack.is_near, self.pack.shards_of(rows)))

    def prefetch(self, rows: Sequence[int], windows: BatchWindows | None = None) -> None:
        """Ask the kernel to read rows from the disk before they are needed, in the order in which they lie there. Of
        fields in tiles only the tiles that the windows touch, of raw volumes only their lines."""
        order = sorted(range(len(rows)), key=rows.__getitem__)
        for number, (targets, inside) in self._by_shard([rows[index] for index in order]).items():
            if self.pack.is_near(number):
                shard = self.pack.shard(number)
                whole, cut = self._in_parts(shard, windows)
                shard.prefetch(whole, inside)
                for field in cut:
                    shard.prefetch_parts(field, _parts(shard, [order[n] for n in targets], inside, windows))

    def drop(self, rows: Sequence[int], windows: BatchWindows | None = None) -> None:
        """Take rows out of the page cache: they are not needed again soon. Of fields in tiles, and of raw volumes,
        only what the windows touch."""
        for shard, targets, inside in self._groups(rows):
            whole, cut = self._in_parts(shard, windows)
            shard.drop(whole, inside)
            for field in cut:
                shard.drop_parts(field, _parts(shard, targets, inside, windows))

    def _in_parts(self, shard: Shard, windows: BatchWindows | None) -> tuple[list[Field], list[Field]]:
        """Return the fields of a shard whose rows are read whole, and the fields whose rows are read in part."""
        present = [field for field in self._stored if shard.has(field.name)]
        are_cut = windows is not None and windows.size is not None
        cut = [field for field in present if field.is_read_in_parts and are_cut]
        return [field for field in present if field not in cut], cut

    def _groups(self, rows: Sequence[int]) -> list[ShardRows]:
        """Return the rows by shard, all of them open."""
        groups = self._by_shard(rows)
        shards = self.pack.shards(groups)
        return [ShardRows(shard, *places) for shard, places in zip(shards, groups.values(), strict=True)]

    def _by_shard(self, rows: Sequence[int]) -> dict[int, tuple[list[int], list[int]]]:
        """Return the indices of the rows in the batch and in the shard, by the number of the shard."""
        groups: dict[int, tuple[list[int], list[int]]] = {}
        for target, (shard, row) in enumerate(self.pack.table.locate_all(rows)):
            targets, inside = groups.setdefault(shard, ([], []))
            targets.append(target)
            inside.append(row)
        return groups

    def _common_size(self, rows: Sequence[int], windows: BatchWindows | None) -> Sides:
        size = windows.size if windows and windows.size else self._size
        if size is not None:
            return size
        sizes = list(map(tuple, self.sizes(rows).tolist()))
        if len(set(sizes)) > 1:
            noun, window = ("volumes", "(D, H, W)") if len(self.sides) == 3 else ("pictures", "(H, W)")
            raise RequestError(
                f"a batch of {len(rows)} rows has {noun} of {different_sizes(sizes)}: give loader() crop={window}, "
                "or use batch_size=1"
            )
        return sizes[0]


def _read_for(field: Field, sides: Sequence[int], window: Sides | None) -> Sequence[int]:
    """Return the sides of what is read of a row for a window, at most."""
    if window is None or not field.is_read_in_parts:
        return sides
    if field.tile is None:
        return [*map(min, sides[:-1], window[:-1]), sides[-1]]
    return [min(s, (-(-w // t) + 1) * t) for s, w, t in zip(sides, window, field.tile, strict=True)]


def _parts(
    shard: Shard, targets: Sequence[int], rows: Sequence[int], windows: BatchWindows | None
) -> list[tuple[int, Area]]:
    """Return rows of a shard, each with the part that its window shows."""
    assert windows is not None, "without windows whole rows are read"
    return [(row, windows.part(target, shard.size(row))) for target, row in zip(targets, rows, strict=True)]


def as_series(field: Field, rows: Any) -> Any:
    """Return rows of a time series, an array or a tensor, with an axis of dates, in the same memory; others
    unchanged."""
    if field.times == 1:
        return rows
    return rows.reshape(len(rows), *field.delivered_planes, *rows.shape[2:])


def _fill(groups: Sequence[ShardRows], field: Delivered, out: NDArray[Any], windows: BatchWindows | None) -> None:
    if field.stored.optional:
        groups = _with_field(groups, field, out)
    if windows is None and field.is_unchanged:
        gather(field.stored.name, groups, out)
        return
    if windows is not None and field.copy is np.copyto and _copied_at_once(groups, field, out, windows):
        return
    for group in groups:
        for target, row in zip(group.targets, group.rows, strict=True):
            if windows is None and field.stored.is_encoded and field.copy is np.copyto:
                group.shard.unpack(field.stored, row, out[target])
                continue
            if windows is None:
                field.copy(out[target], group.shard.pixels(field.stored, row))
            else:
                read = partial(group.shard.window, field.stored, row)
                windows.copy(target, group.shard.size(row), read, out[target], field.how)


def _copied_at_once(groups: Sequence[ShardRows], field: Delivered, out: NDArray[Any], windows: BatchWindows) -> bool:
    """Copy the windows of raw rows, in tiles or not, by one call of the kernel. Return False if it cannot do that."""
    if field.stored.unit_encoding != RAW:
        return False
    if field.stored.tile is None:
        return windows.copy_all(_pictures(groups, field), out, field.how)
    rows = ((target, shard, row) for shard, targets, rows in groups for target, row in zip(targets, rows, strict=True))
    pictures = ((target, shard.stored(field.stored, row), shard.size(row)) for target, shard, row in rows)
    return windows.copy_tiles(pictures, field.stored.tile, out)


def _mark(groups: Sequence[ShardRows], out: NDArray[np.bool_]) -> None:
    """Mark the rows that have a label."""
    for shard, targets, _ in groups:
        out[targets] = any(field.name == LABEL for field in shard.facts.fields)


def _mark_valid(field: Field, pictures: NDArray[Any], out: NDArray[np.bool_]) -> None:
    """Mark the pixels that have data in a band."""
    if not field.no_data:
        out[...] = True
        return
    missing = np.isnan(pictures) if math.isnan(field.fill_number) else pictures == field.fill_number
    np.logical_not(missing.all(axis=1), out=out)


def _with_field(groups: Sequence[ShardRows], field: Delivered, out: NDArray[Any]) -> Sequence[ShardRows]:
    """Return the groups whose shards have the field. The rows of others get the number in padding everywhere."""
    name = field.stored.name
    for shard, targets, _ in groups:
        if not shard.has(name):
            out[targets] = field.field.fill_number
    return [group for group in groups if group.shard.has(name)]


def _pictures(groups: Sequence[ShardRows], field: Delivered) -> Iterator[BatchPicture]:
    for shard, targets, rows in groups:
        data, starts = shard.located(field.stored.name, rows)
        for target, row, start in zip(targets, rows, starts, strict=True):
            yield target, data, start, shard.size(row)
