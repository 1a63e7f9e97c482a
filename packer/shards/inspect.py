"""Inspect a pair before anything is packed: count the values and colours of its label, fingerprint its image."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.decoding.band_choice import ALL
from packer.decoding.bands import Bands, read_bands
from packer.decoding.decode import LabelFile, decode_image, header_of, read_label
from packer.decoding.header import Header
from packer.decoding.no_data_choice import FILE
from packer.decoding.raw_file import naming
from packer.decoding.rules import MOST_PIXELS, ImageRules
from packer.errors import BadPair
from packer.pixels.class_lookup import colour_codes
from packer.pixels.class_picture import from_indices
from packer.pixels.image_hash import image_hash
from packer.pixels.label_codec import LabelCodec
from packer.pixels.label_rules import AS_THE_TABLE_SAYS, LabelRules
from packer.recipe.recipe import Recipe
from packer.recipe.row_ref import RowRef
from packer.recipe.source import FieldData, PackedPixels, Slices, Source
from packer.shards.alike_heads import header_of_facts
from packer.shards.kinds import FieldKind
from packer.shards.kinds.by_field import kinds_of
from readers.contract.classes import ClassTable
from readers.contract.json_entry import Entry
from readers.contract.tiles import Size

MOST_COUNTS = 4096
"""The commonest values and colours of a label that are kept. A label with more is a photograph, or blurred."""
OPAQUE = np.uint32(0xFF << 24)
"""Flipped in the alpha, so an opaque colour has the same code in pictures with and without transparency."""
LABEL_NUMBER = 1
"""The number of the label among the fields of a row, if it has one."""
WHOLE_RANGE = (0.0, 65535.0)


@dataclass(frozen=True)
class InspectRequest:
    """A pair to inspect. With `classes`, the label is also decoded by them. A file without a part is not read."""

    ref: RowRef
    classes: ClassTable | None = None
    rules: LabelRules = AS_THE_TABLE_SAYS
    max_pixels: int = MOST_PIXELS
    image_rules: ImageRules | None = None
    """Decode the image by these rules, as a shard does. Without them everything that can be decoded is accepted."""
    label: int = LABEL_NUMBER
    """The number of the label among the fields; 0 if there is none."""
    recipe: Recipe | None = None
    """Decode the fields behind image and label as this recipe says."""
    only_heads: bool = False
    """Return the headers of all fields, and decode nothing."""

    def to_json(self) -> dict[str, Any]:
        return {
            **self.ref._asdict(),
            "classes": None if self.classes is None else self.classes.to_json(),
            "rules": self.rules.to_json(),
            "max_pixels": self.max_pixels,
            "image_rules": None if self.image_rules is None else self.image_rules.to_json(),
            "label": self.label,
            "recipe": None if self.recipe is None else self.recipe.to_json(),
            "only_heads": self.only_heads,
        }

    @classmethod
    def from_json(cls, entry: Entry) -> InspectRequest:
        return cls(
            RowRef(entry.text("split"), entry.text("key"), entry.texts("parts")),
            entry.maybe("classes", lambda key: ClassTable.from_json(entry.entry(key))),
            LabelRules.from_json(entry.entry("rules")),
            entry.whole("max_pixels"),
            entry.maybe("image_rules", lambda key: ImageRules.from_json(entry.entry(key))),
            entry.whole("label"),
            entry.maybe("recipe", lambda key: Recipe.from_json(entry.entry(key))),
            entry.truth("only_heads"),
        )


@dataclass(frozen=True)
class LabelCounts:
    """The pixels of a label by value and colour. `bad` is the reason why the pair cannot be packed."""

    values: dict[int, int] = field(default_factory=dict)
    """Pixels by number: of a gray label, or of a palette label by its index."""
    colours: dict[int, int] = field(default_factory=dict)
    """Pixels by colour code: of an RGB label, or of a palette label by its colour."""
    palette: dict[int, int] = field(default_factory=dict)
    """The colour code of each index of a palette, whether it is used or not."""
    size: Size | None = None
    """The height and width of the label, or of the image if there is no label."""
    look: str | None = None
    bad: str | None = None
    heads: tuple[Header, ...] = ()
    """The headers of the fields that the row has."""

    def to_json(self) -> dict[str, Any]:
        counts = {name: sorted(getattr(self, name).items()) for name in ("values", "colours", "palette")}
        heads = [astuple(header) for header in self.heads]
        return {**counts, "size": self.size, "look": self.look, "bad": self.bad, "heads": heads}

    @classmethod
    def from_json(cls, entry: Entry) -> LabelCounts:
        values, colours, palette = (_pairs(entry.lists(name)) for name in ("values", "colours", "palette"))
        size = entry.maybe("size", entry.wholes)
        whole = None if size is None else tuple(size)
        heads = tuple(header_of_facts(*facts) for facts in entry.lists("heads"))
        look, bad = (entry.maybe(name, entry.text) for name in ("look", "bad"))
        return cls(values, colours, palette, whole, look, bad, heads)


def inspect_pair(request: InspectRequest, source: Source) -> LabelCounts:
    """Decode a pair as a shard will, or the middle slice of a pair of volumes, and count its pixels."""
    parts = request.ref.parts
    source.expect([request.ref])
    loaded, counts = source.load(request.ref), LabelCounts()
    if loaded.bad is not None:
        return LabelCounts(bad=loaded.bad)
    if request.only_heads:
        return _heads(parts, loaded.data)
    try:
        data = tuple(content.middle if isinstance(content, Slices) else content for content in loaded.data)
    except BadPair as bad:
        return LabelCounts(bad=str(bad))
    image, label = parts[0], parts[request.label] if request.label else ""
    if any(isinstance(field_data, PackedPixels) for field_data in data):
        return _row_of_pixels(request, data)
    image_data, label_data = data[0], data[request.label]
    try:
        if label:
            with naming(label):
                lossy = request.classes is None or request.rules.lossy  # without rules, any picture is read
                decoded = read_label(label_data, lossy, request.max_pixels)
                counts = _label(decoded)
                if request.classes is not None:
                    _codec(request.classes, request.rules, request.max_pixels).classify(decoded)
        if image:
            with naming(image):
                pixels = _image(image_data, request.image_rules, request.max_pixels)
            counts = replace(counts, look=_look(pixels), size=counts.size or pixels.shape[:2])
        if request.recipe is not None:
            _check_further(request.recipe, parts, data, 2 if request.label else 1)
    except BadPair as bad:
        return replace(counts, bad=str(bad))
    return counts


def _heads(parts: Sequence[str], fields: Sequence[FieldData]) -> LabelCounts:
    """Return the headers of the fields that a row has."""
    heads = []
    try:
        for part, data in zip(parts, fields, strict=True):
            if part:
                with naming(part):
                    heads.append(_header_of_field(data))
    except BadPair as bad:
        return LabelCounts(bad=str(bad))
    return LabelCounts(size=heads[0].size, heads=tuple(heads))


def _header_of_field(data: FieldData | Slices) -> Header:
    """Return the header of a picture, or of a volume by its middle slice."""
    if isinstance(data, Slices):
        return replace(header_of(data.middle, sys.maxsize), slices=data.size[0])
    return header_of(data, sys.maxsize)


def _check_further(recipe: Recipe, parts: Sequence[str], data: Sequence[Any], first: int) -> None:
    """Decode the fields from number `first` on. Raise BadPair if a shard would refuse one."""
    kinds = kinds_of(recipe, recipe.fields)
    for number in range(first, len(parts)):
        if parts[number]:
            with naming(parts[number]):
                kinds[number].decode(data[number])


def _row_of_pixels(request: InspectRequest, data: Sequence[Any]) -> LabelCounts:
    """Inspect a row of a pack, in which each field that is there holds its pixels."""
    image, label = data[0], data[request.label] if request.label else None
    index = label.pixels if isinstance(label, PackedPixels) else None
    try:
        with naming(f"{request.ref.split}/{request.ref.key}"):
            if request.classes is not None and index is not None:
                from_indices(index, len(request.classes))
            for kind, pixels in zip(_kinds(request.recipe), data, strict=False):
                if isinstance(pixels, PackedPixels):
                    kind.decode(pixels)
    except BadPair as bad:
        return LabelCounts(bad=str(bad))
    look = _look(image.pixels) if isinstance(image, PackedPixels) else None
    return LabelCounts({} if index is None else _counts(index), look=look)


def _kinds(recipe: Recipe | None) -> tuple[FieldKind, ...]:
    return () if recipe is None else kinds_of(recipe, recipe.fields)


def _label(label: LabelFile) -> LabelCounts:
    """Count the numbers of a gray label, the colours of an RGB label, and both for a palette."""
    index, size = _as_gray(label.pixels(as_index=True)), label.header.size
    values = _counts(index) if index.ndim == 2 else {}
    entries = label.stored.palette if values else None
    shown = index
    if entries is not None:  # a gray entry of a palette is a colour; gray elsewhere is a number
        shown = label.pixels(as_index=False)
    if shown.ndim == 2:
        return LabelCounts(values, size=size)
    codes = colour_codes(shown) ^ OPAQUE if shown.shape[2] == 4 else colour_codes(shown)
    palette = {} if entries is None else dict(enumerate((colour_codes(entries[None])[0] ^ OPAQUE).tolist()))
    return LabelCounts(values, _counts(codes), palette, size)


def colour_parts(codes: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Return red, green, blue and alpha of each colour code: (N,4)."""
    return np.asarray((codes ^ OPAQUE)[:, None] >> np.array([0, 8, 16, 24], np.uint32) & 0xFF, np.uint8)


def _image(data: FieldData, rules: ImageRules | None, max_pixels: int) -> NDArray[Any]:
    if rules is None:
        header = header_of(data, max_pixels)
        whole = WHOLE_RANGE if header.dtype != "|u1" else None
        has_bands = bool(header.extra or header.band_names or header.no_data)
        rules = ImageRules(whole, "drop", max_pixels, bands=ALL if has_bands else None)
        rules = replace(rules, no_data=FILE) if header.no_data else rules
    return decode_image(data, rules) if rules.bands is None else read_bands(data, Bands(rules.bands), rules)


def _look(pixels: NDArray[Any]) -> str:
    return image_hash(zlib.crc32(np.ascontiguousarray(pixels).data), pixels.transpose(2, 0, 1))


def _as_gray(pixels: NDArray[Any]) -> NDArray[Any]:
    """Return one channel (H,W) if all three are the same."""
    if pixels.ndim == 2 or pixels.shape[2] != 3:
        return pixels
    same = (pixels[..., 0] == pixels[..., 1]).all() and (pixels[..., 0] == pixels[..., 2]).all()
    return pixels[..., 0] if same else pixels


def _counts(numbers: NDArray[Any]) -> dict[int, int]:
    if numbers.itemsize <= 2:
        every = np.bincount(numbers.reshape(-1))  # a fifth of the time of sorting them
        present = np.flatnonzero(every)
        pixels = every[present]
    else:
        present, pixels = np.unique(numbers, return_counts=True)
    commonest = np.argsort(-pixels, kind="stable")[:MOST_COUNTS]
    return dict(zip(present[commonest].tolist(), pixels[commonest].tolist(), strict=True))


def _pairs(values: Iterable[list[Any]]) -> dict[int, int]:
    return {int(key): int(value) for key, value in values}


@lru_cache(maxsize=1)
def _codec(classes: ClassTable, rules: LabelRules, max_pixels: int) -> LabelCodec:
    """Return the codec, kept: its tables take longer to fill than a picture to decode."""
    return LabelCodec(classes, rules, max_pixels)
