"""Turn what a source gives into a stored row, field by field, or find the reason why it is bad."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from zlib_ng.zlib_ng import crc32

from packer.decoding.decode import check_same_size
from packer.decoding.header import Header
from packer.decoding.raw_file import naming
from packer.errors import BadPair, LostFile, LostFileError
from packer.pixels.choices import TILE
from packer.pixels.encode import EQUAL, encode, psnr
from packer.pixels.image_hash import image_hash
from packer.pixels.nearest_lines import stored_lines
from packer.recipe.piece import Piece
from packer.recipe.recipe import Recipe
from packer.recipe.row_ref import RowRef
from packer.recipe.source import Given, Lines, Loaded, PackedPixels, Slices, Source
from packer.shards import giant_rows
from packer.shards.cell_files import row_cells
from packer.shards.columns import RowMemory
from packer.shards.file_headers import HeaderJudge, first_file, headers_of, headers_of_strips, place_in
from packer.shards.giant_rows import is_giant
from packer.shards.kinds import Decoded
from packer.shards.kinds.by_field import check_row, kinds_of
from packer.shards.label_mask import LabelMask
from packer.shards.row_places import stored_place
from packer.shards.scratch import Scratch
from readers.contract import giant
from readers.contract.cells import is_counted
from readers.contract.count_cells import RowCells
from readers.contract.fields import Field, Sides
from readers.contract.place import Place
from readers.contract.receipt import RowInput
from readers.contract.statistics import FieldStatistics
from readers.contract.tiles import Origin, Size

if TYPE_CHECKING:
    from packer.shards.field_scaler import FieldScaler
    from packer.shards.line_window import LineWindow

AGAIN = "rows of {} encoded again: {}"
"""The words of a count: the field and the reason, if JPEG files were to be kept."""


@dataclass(frozen=True)
class Row:
    """The result of packing a row, without its pixels. `reject` is the reason why it is not packed."""

    source: RowInput
    crc32: tuple[int, ...] = ()
    """The CRC-32 of the stored bytes of each field, if the row is good."""
    look: str = ""
    statistics: tuple[FieldStatistics, ...] = ()
    """The statistics of each field, if the row is good."""
    reject: str | None = None
    state: Sequence[int] | NDArray[np.int64] = ()
    """The state of the row just before it was read."""
    size: Sides | None = None
    """The sides of the upright picture or volume, if it is good."""
    psnr: tuple[int, ...] = ()
    """The PSNR of the decoded pixels of each field, in hundredths of a decibel, if the row is good."""
    note: str = ""
    """A fact about the row, if it is good and its source has noticed one."""
    counts: Mapping[str, int] | None = None
    """Numbers of a good row that are summed. Only the first tile of a picture has the numbers of the source."""
    place: Place | None = None
    """The place of a good row, if its files say it."""
    cells: tuple[RowCells, ...] = ()
    """The cells of each field that has classes, if the row is good."""


@dataclass(frozen=True)
class RowTarget:
    """The row of a shard that a piece becomes."""

    piece: Piece
    columns: RowMemory
    index: int


class RowMaker:
    """Turns pieces that have the same fields into rows by one recipe. Threads may share it."""

    def __init__(self, recipe: Recipe, fields: Sequence[Field], source: Source, scratch: Scratch | None = None) -> None:
        """Rows that are too large for memory need a scratch folder; without one all rows are built at once."""
        self._scratch = scratch if source.gives_lines else None
        self._fields, self._kinds = fields, kinds_of(recipe, fields)
        self._rules = [next(rule for rule in recipe.rules if rule.name == field.name) for field in fields]
        self._source = source
        self._geometry = recipe.geometry
        self._recipe = recipe
        self._judge = HeaderJudge(self._rules, recipe.place)
        self._mask = LabelMask.of(self._rules, self._kinds)
        self._scaler: FieldScaler | None = None
        if recipe.geometry.resolution is not None:
            from packer.shards.field_scaler import FieldScaler  # most pictures keep their pixels

            self._scaler, self._scratch = FieldScaler(recipe, self._rules), None

    def fill(self, targets: Sequence[RowTarget]) -> list[Row]:
        """Pack the pieces of one row of the source. The identities belong to the bytes that were decoded."""
        first = targets[0].piece
        state = self._source.states([first.ref])[0]
        if self._scratch is not None and is_giant(self._fields, first.size or self._kept_size(first)):
            return [self._fill_giant(target, state, self._scratch) for target in targets]
        if self._cuts_strips(first.size):
            return self._fill_tiles(targets, state)
        loaded = self._source.load(first.ref)
        present = [number for number, part in enumerate(first.ref.parts) if part]
        identities = [loaded.identities[number] for number in present]
        inputs = [RowInput(target.piece.key, *identities) for target in targets]
        try:
            loaded.check()
            if loaded.at_stored is not None and not self._geometry.depends_on_source and self._scaler is None:
                loaded = loaded.at_stored(lambda size: stored_lines(self._geometry.placement(size)))
            data = [loaded.data[number] for number in present]
            headers = [headers_of(first.ref.parts[number], loaded.data[number]) for number in present]
            loaded = self._judge.judged(loaded, headers)
            fields, place = self._decode(first, dict(zip(present, data, strict=True))), place_in(loaded, headers)
            if self._scaler is not None:
                fields, place = self._scaler.scaled(first, fields, headers, place)
            pieces = zip(targets, inputs, strict=True)
            rows = [self._pack(target, source, fields, data, target.piece.origin) for target, source in pieces]
            rows = [_with_facts(row, target.piece, loaded, state) for row, target in zip(rows, targets, strict=True)]
            return self._placed(rows, targets, place, fields[0].size)
        except BadPair as bad:
            self._check_not_lost(first, bad)
            return [Row(source, reject=str(bad), state=state) for source in inputs]

    def _kept_size(self, piece: Piece) -> Size | None:
        """Return the size of all rows, if they are giant and this picture has it: its pixels are not scaled."""
        size = self._geometry.size
        if size is None or self._geometry.fit == TILE or not is_giant(self._fields, size):
            return None
        heads = next(iter(self._source.heads([piece.ref])))
        return None if isinstance(heads, str) or heads[0].size != size else size

    def _cuts_strips(self, size: Sides | None) -> bool:
        """Return whether tiles are cut from a picture of this size that is too large to be decoded at once."""
        if self._geometry.fit != TILE or size is None or not self._source.gives_strips or self._scaler is not None:
            return False
        return sum(field.row_bytes_at(*size) for field in self._fields) > giant.GIANT

    def _fill_tiles(self, targets: Sequence[RowTarget], state: NDArray[np.int64]) -> list[Row]:
        """Pack tiles of one picture. Only the lines that they touch are decoded: damage elsewhere is not seen."""
        from packer.shards.line_window import LineWindow  # most pictures are decoded at once

        first = targets[0].piece
        loaded = self._source.load_lines(first.ref)
        present = [number for number, part in enumerate(first.ref.parts) if part]
        inputs = [RowInput(target.piece.key, *[loaded.identities[number] for number in present]) for target in targets]
        names, rows = list(filter(None, first.ref.parts)), dict[int, Row]()
        with ExitStack() as opened:
            fields = [opened.enter_context(closing(lines)) for lines in loaded.data if lines]
            try:
                loaded.check()
                for number, lines in enumerate(fields):
                    self._check_size(first, names, number, fields[0].size, lines.size)
                windows = list(map(LineWindow, fields))
                for top, numbers in _by_top(targets):
                    data, headers = self._strip(windows, names, top, fields[0].size[0])
                    decoded = self._masked(self._decoded_strips(names, top, data))
                    for number in numbers:
                        rows[number] = self._tile(targets[number], inputs[number], decoded, data, fields[0].size)
                    del data, decoded  # the next lines take their memory
                loaded = self._judge.judged(loaded, headers)
            except BadPair as bad:
                self._check_not_lost(first, bad)
                return [Row(source, reject=str(bad), state=state) for source in inputs]
        every = [_with_facts(rows[number], target.piece, loaded, state) for number, target in enumerate(targets)]
        return self._placed(every, targets, place_in(loaded, headers), fields[0].size)

    def _strip(
        self, windows: Sequence[LineWindow], names: Sequence[str], top: int, height: int
    ) -> tuple[list[Given], list[dict[str, Header]]]:
        """Return the lines of each field for tiles that begin at `top`, and the headers of the files."""
        assert self._geometry.size is not None, "tiles have a size"
        data, headers = list[Given](), list[dict[str, Header]]()
        for name, window in zip(names, windows, strict=True):
            with naming(name):
                data.append(window.between(top, min(height, top + self._geometry.size[0])))
            headers.append(headers_of_strips(name, data[-1]))
        return data, headers

    def _decoded_strips(self, names: Sequence[str], top: int, data: Sequence[Given]) -> list[Decoded]:
        """Decode the lines of each field from `top` on. Positions in messages are of the picture."""
        decoded = []
        for name, rule, kind, lines in zip(names, self._rules, self._kinds, data, strict=True):
            with naming(name), giant_rows.counted_from(top, lines):
                giant_rows.check_reading(rule, lines)
                decoded.append(kind.decode(lines))
        return decoded

    def _tile(
        self, target: RowTarget, source: RowInput, fields: Sequence[Decoded], data: Sequence[Given], size: Size
    ) -> Row:
        """Store a tile that begins at the top of these lines of a picture of this size."""
        _, left = target.piece.origin or (0, 0)
        return replace(self._pack(target, source, fields, data, (0, left)), size=size)

    def _fill_giant(self, target: RowTarget, state: NDArray[np.int64], scratch: Scratch) -> Row:
        """Pack a row that is too large for memory."""
        piece = target.piece
        loaded = self._source.load_lines(piece.ref)
        present = [number for number, part in enumerate(piece.ref.parts) if part]
        source = RowInput(piece.key, *[loaded.identities[number] for number in present])
        with ExitStack() as opened:
            fields = [opened.enter_context(closing(lines)) for lines in loaded.data if lines]
            try:
                loaded.check()
                names = list(filter(None, piece.ref.parts))
                for number, lines in enumerate(fields):
                    self._check_size(piece, names, number, fields[0].size, lines.size)
                built = self._build(target, fields, names, scratch)
                headers = [
                    {} if stored.header is None else {first_file(name): stored.header}
                    for name, stored in zip(names, built, strict=True)
                ]
                loaded = self._judge.judged(loaded, headers)
            except BadPair as bad:
                self._check_not_lost(piece, bad)
                return Row(source, reject=str(bad), state=state)
        look = next((stored.look for stored in built if stored.look), "")
        sums, statistics, psnr = (
            [getattr(stored, fact) for stored in built] for fact in ("crc32", "statistics", "psnr")
        )
        row = Row(source, tuple(sums), look, tuple(statistics), size=piece.size, psnr=tuple(psnr))
        cells = tuple(stored.cells for stored in built if stored.cells is not None)
        return replace(_with_facts(row, piece, loaded, state), place=place_in(loaded, headers), cells=cells)

    def _check_not_lost(self, piece: Piece, bad: BadPair) -> None:
        """Raise LostFileError if this machine cannot read what the plan has read: such a row is not to be a reject.

        A header that was good in the plan and is bad now is one of another file, or of a part of the file.
        """
        if piece.is_bad:
            return
        if not isinstance(bad, LostFile):
            heads = next(iter(self._source.heads([piece.ref])))
            if not isinstance(heads, str):
                return
        hint = "the plan has read it, so its pair is not bad. Is its folder mounted on this machine? Build again"
        raise LostFileError(f"{str(bad).removesuffix('; build again')}; {hint}") from bad

    def _placed(self, rows: list[Row], targets: Sequence[RowTarget], place: Place | None, size: Size) -> list[Row]:
        """Return the rows of a picture or volume of this size with their places. Volumes keep their size."""
        if place is None:
            return rows
        if len(size) > 2:
            return [replace(row, place=place) for row in rows]
        placements = [self._geometry.placement(size, target.piece.origin) for target in targets]
        pairs = zip(rows, placements, strict=True)
        return [replace(row, place=stored_place(place, placement)) for row, placement in pairs]

    def _build(
        self, target: RowTarget, fields: Sequence[Lines], names: Sequence[str], scratch: Scratch
    ) -> list[giant_rows.StoredInFile]:
        """Store each field of a row in a file of its own. A bad row leaves no file."""
        paths = [scratch.path(f"{target.index}-{rule.name}") for rule in self._rules]
        unscaled = replace(self._recipe, geometry=replace(self._geometry, size=None))
        steps = zip(self._rules, kinds_of(unscaled, self._fields), fields, names, paths, strict=True)
        try:
            built = [
                giant_rows.build(*step, self._strip_mask(target.piece, number)) for number, step in enumerate(steps)
            ]
        except BadPair:
            for path in paths:
                path.unlink(missing_ok=True)
            raise
        for field, path in zip(self._fields, paths, strict=True):
            target.columns.put(target.index, field, path)
        return built

    def _strip_mask(self, piece: Piece, number: int) -> giant_rows.StripMask | None:
        """Return what ignores strips of a field where the picture, which is decoded once more, has no data."""
        if self._mask is None or number not in self._mask.labels:
            return None
        picture, *others = filter(None, self._source.load_lines(piece.ref).data)
        for lines in others:
            lines.close()
        return giant_rows.StripMask(self._mask, picture)

    def _check_size(self, piece: Piece, names: Sequence[str], number: int, first: Size, size: Size) -> None:
        """Refuse a field of another size than the first, and another size than the planned one if it decides the
        rows."""
        image, file = first_file(names[0]), first_file(names[number])
        check_same_size(image, first, file, size, self._fields[number].name)
        is_planned = self._geometry.depends_on_source and self._scaler is None
        if number == len(names) - 1 and is_planned and first != piece.size:
            raise LostFile(f"{image}: was another picture when the build was planned; build again")

    def _decode(self, piece: Piece, data_of: Mapping[int, Given]) -> list[Decoded]:
        """Decode all fields of a row."""
        fields: list[Decoded] = []
        names = [_name(piece.ref, piece.ref.parts[number], data) for number, data in data_of.items()]
        for number, (kind, data) in enumerate(zip(self._kinds, data_of.values(), strict=True)):
            with naming(names[number]):
                fields.append(kind.decode(data))
            self._check_size(piece, names, number, fields[0].size, fields[-1].size)
        return self._masked(fields)

    def _masked(self, fields: list[Decoded]) -> list[Decoded]:
        """Return the fields of a row, with labels ignored where there is no data if the rules say so."""
        return fields if self._mask is None else self._mask.applied(fields)

    def _pack(
        self,
        target: RowTarget,
        source: RowInput,
        fields: Sequence[Decoded],
        data: Sequence[Given],
        origin: Origin | None,
    ) -> Row:
        """Store each field. The hash belongs to the first picture."""
        sums: list[int] = []
        look = ""
        statistics: list[FieldStatistics] = []
        psnr: list[int] = []
        cells: list[RowCells] = []
        again: dict[str, int] = {}
        arrays = target.columns.rows(target.index)
        ref, parts = target.piece.ref, list(filter(None, target.piece.ref.parts))
        for number, (kind, field, out) in enumerate(zip(self._kinds, fields, arrays, strict=True)):
            with naming(_name(ref, parts[number], data[number])):
                stored = kind.store(field, origin, out)
                if is_counted(self._rules[number].field):
                    cells.append(row_cells(self._rules[number].field, out))
                checksum, counts, quality, why = crc32(out.data), stored.statistics, EQUAL, ""
                if stored.planes is not None and not look:
                    look = image_hash(checksum, stored.planes)
                if self._rules[number].field.is_encoded:
                    checksum, counts, quality, why = self._encode(target, number, out, data[number], counts)
            sums.append(checksum)
            statistics.append(counts)
            psnr.append(quality)
            again |= {AGAIN.format(self._rules[number].name, why): 1} if why else {}
        row = Row(source, tuple(sums), look, tuple(statistics), size=fields[0].size, psnr=tuple(psnr))
        return replace(row, counts=again, cells=tuple(cells))

    def _encode(
        self, target: RowTarget, number: int, out: NDArray[Any], data: Given, counts: FieldStatistics
    ) -> tuple[int, FieldStatistics, int, str]:
        """Store the row of an encoded field. Return its checksum, the statistics of what is read from it, its PSNR,
        and why its file was not kept."""
        rule = self._rules[number]
        encoded = encode(rule.field, rule.jpeg, out, _file(data))
        target.columns.put(target.index, rule.field, encoded.stored)
        if encoded.numbers is not None:
            counts = check_row(rule.field, encoded.numbers)
        return crc32(encoded.stored), counts, psnr(encoded.squares, out.size), encoded.why


def _file(data: Given) -> bytes:
    """Return the file that a field of a row was read from; nothing if it was read from arrays or several files."""
    if isinstance(data, PackedPixels):
        return data.file
    return data if isinstance(data, bytes) else b""


def _by_top(targets: Sequence[RowTarget]) -> Iterator[tuple[int, list[int]]]:
    """Yield the first row of tiles from the top of their picture on, and the numbers of the tiles that begin there."""
    tops = [(target.piece.origin or (0, 0))[0] for target in targets]
    for top in sorted(set(tops)):
        yield top, [number for number, at in enumerate(tops) if at == top]


def _with_facts(row: Row, piece: Piece, loaded: Loaded, state: NDArray[np.int64]) -> Row:
    """Return the row that a piece becomes with its state, its note and the counts of its source."""
    counts = loaded.counts if piece.origin in (None, (0, 0)) else None
    return replace(row, state=state, note=loaded.note, counts={**(row.counts or {}), **(counts or {})})


def _name(ref: RowRef, part: str, data: Given) -> str:
    """Return the name of a field of a row for messages: its files, or its key in a pack."""
    if isinstance(data, Slices):
        return data.name
    return f"{ref.split}/{ref.key}" if isinstance(data, PackedPixels) else part
