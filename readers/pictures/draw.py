"""`draw`: a stored row of any kind of field as 8-bit RGB."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.bits import unpack_bits
from readers.contract.fields import RGB as BAND_NAMES
from readers.contract.fields import Field
from readers.contract.kinds import BITS, CLASSES, IDS, MULTILABEL, ONEHOT, PICTURE, VALUES
from readers.contract.onehot import collapse
from readers.contract.palette import IGNORED, Palette, apart
from readers.contract.slices import picture_in
from readers.pictures.shrink import ShownSize, mean, nearest
from readers.pictures.window import ShownPart, has_window, window_of

Picture = NDArray[np.uint8]
"""Red, green and blue: (H, W, 3)."""
SHOWN, HATCHED, FAINT, HIDDEN = range(4)
"""The kinds of pixels of a label: a class or value, ignored, nothing (such as no object), not requested."""
STRIPE = 4
"""The width of the stripes where classes overlap."""
OBJECTS = 64
"""The number of colours for objects."""
MOST_MENDED = 100
"""The most objects that get another colour because a neighbour has theirs."""
BACKGROUND = (24, 26, 31)
"""The colour of pixels in no object and no class."""
_RAMP = "440154 482475 414487 355f8d 2a788e 21918c 22a884 44bf70 7ad151 bddf26 fde725"


@dataclass(frozen=True)
class Drawing:
    """A drawn field: its colours; for each pixel SHOWN, HATCHED, FAINT or HIDDEN; and a note, such as its window.

    `parts` are numbers that differ where an outline belongs; None if there are no outlines.
    """

    rgb: Picture
    cover: NDArray[np.uint8]
    parts: NDArray[Any] | None = None
    note: str = ""


@dataclass(frozen=True)
class Look:
    """A size, a palette, a window of numbers, some of the classes; None means as in the row, and all classes."""

    size: ShownSize | None = None
    palette: Palette | None = None
    window: ShownPart | None = None
    only: Collection[int] | None = None


def draw(field: Field, pixels: NDArray[Any], look: Look | None = None) -> Drawing:
    """Return a row of a field, in the form that the field has, as a picture: of a volume its middle slice.

    Nothing is copied that is not shown.
    """
    pixels = picture_in(field, pixels)
    look = look or Look()
    look = look if look.size is not None else replace(look, size=pixels.shape[-2:])
    return _DRAWN[field.kind](field, pixels, look)


def ramp() -> Picture:
    """Return the 256 colours of measured values, from low to high: the colours of Viridis."""
    stops = np.array([list(bytes.fromhex(stop)) for stop in _RAMP.split()], np.float64)
    at = np.linspace(0, len(stops) - 1, 256)
    return np.stack([np.interp(at, np.arange(len(stops)), band) for band in stops.T], -1).round().astype(np.uint8)


def shown_bands(bands: tuple[str, ...]) -> tuple[int, int, int]:
    """Return the bands that are drawn as red, green and blue: the bands with these names, else the first three.

    Of two bands, the first is red and blue, the second green.
    """
    if set(BAND_NAMES) <= set(bands):
        red, green, blue = map(bands.index, BAND_NAMES)
        return red, green, blue
    return {1: (0, 0, 0), 2: (0, 1, 0)}.get(len(bands), (0, 1, 2))


def _picture(field: Field, pixels: NDArray[Any], look: Look) -> Drawing:
    size = look.size or pixels.shape[-2:]
    bands = shown_bands(field.bands or ())
    if field.dtype == "|u1" and look.window is None and pixels.shape[-2:] == size:
        rgb = np.stack([pixels[band] for band in bands], -1)
        return _hatched(rgb, _without_data(field, pixels, bands, size), _bands_note(field, bands, {}))
    windows = {band: look.window or window_of(field, pixels[band]) for band in dict.fromkeys(bands)}
    planes = {band: window.scaled(mean(pixels[band], size)) for band, window in windows.items()}
    missing = np.logical_or.reduce([np.isnan(plane) for plane in planes.values()])
    missing |= _without_data(field, pixels, bands, size)
    eight = {band: (np.nan_to_num(plane) * 255 + 0.5).astype(np.uint8) for band, plane in planes.items()}
    return _hatched(np.stack([eight[band] for band in bands], -1), missing, _bands_note(field, bands, windows))


def _without_data(field: Field, pixels: NDArray[Any], bands: tuple[int, ...], size: ShownSize) -> NDArray[np.bool_]:
    """Return which shown pixels have no data in any shown band."""
    if not field.no_data:
        return np.zeros(size, np.bool_)
    shown = [nearest(pixels[band], size) for band in dict.fromkeys(bands)]
    return np.asarray(np.logical_and.reduce([band == np.array(field.fill_number, band.dtype) for band in shown]))


def _hatched(rgb: Picture, missing: NDArray[np.bool_], note: str) -> Drawing:
    """Return a drawing whose missing pixels are drawn as ignored."""
    rgb[missing] = IGNORED
    return Drawing(rgb, missing * np.uint8(HATCHED), note=note)


def _bands_note(field: Field, bands: tuple[int, ...], windows: dict[int, ShownPart]) -> str:
    """Return which bands are shown if there are others, and the range of numbers if it is not the field's range."""
    names = field.bands or ()
    some = len(names) > 3 or len(names) == 2
    named = f"{', '.join(names[band] for band in bands)} of {len(names)} bands" if some else ""
    has_windows = not has_window(field) and windows
    numbers = " · ".join(dict.fromkeys(map(str, windows.values()))) if has_windows else ""
    return " · ".join(filter(None, (named, numbers)))


def _classes(field: Field, pixels: NDArray[Any], look: Look) -> Drawing:
    assert field.classes is not None
    table, size = field.classes, look.size or pixels.shape[-2:]
    taken = nearest(pixels, size)
    index = collapse(taken, table.index_dtype) if field.form == ONEHOT else taken
    kind = np.full(table.ignore_index + 1, HATCHED, np.uint8)
    kind[: len(table)] = SHOWN if look.only is None else HIDDEN
    kind[list(look.only or ())] = SHOWN
    kind[table.ignore_index] = HATCHED if look.only is None else HIDDEN
    lookup = (look.palette or table.palette).lookup
    return Drawing(lookup[index], kind[index], index)


def _multilabel(field: Field, pixels: NDArray[Any], look: Look) -> Drawing:
    """Draw overlapping classes as stripes of their colours."""
    assert field.classes is not None
    table, size = field.classes, look.size or pixels.shape[-2:]
    taken = nearest(pixels, size)
    planes = unpack_bits(taken, len(table)) if field.form == BITS else taken
    asked = range(len(table)) if look.only is None else sorted(look.only)
    colours = (look.palette or table.palette).rgb
    count = np.zeros(size, np.int32)
    for number in asked:
        count += planes[number]
    turn = _diagonals(size, STRIPE) % np.maximum(count, 1)
    rgb, parts, before = np.empty((*size, 3), np.uint8), np.zeros(size, np.uint32), np.zeros(size, np.int32)
    rgb[:] = BACKGROUND
    for number in asked:
        plane = planes[number].view(np.bool_)
        rgb[plane & (before == turn)] = colours[number]
        before += plane
        parts = parts * np.uint32(31) + plane
    return Drawing(rgb, np.where(count > 0, SHOWN, FAINT if look.only is None else HIDDEN).astype(np.uint8), parts)


def _diagonals(size: ShownSize, width: int) -> NDArray[np.int64]:
    """Return the number of the diagonal stripe of each pixel."""
    return (np.arange(size[0])[:, None] + np.arange(size[1])) // width


def _ids(field: Field, pixels: NDArray[Any], look: Look) -> Drawing:
    ids = nearest(pixels, look.size or pixels.shape[-2:])
    slots = _slot(ids)
    for number in _like_a_neighbour(ids, slots)[:MOST_MENDED].tolist():
        inside = ids == number
        used = {*slots[_grown(inside)].tolist()}
        start = int(_slot(np.array([number], ids.dtype))[0])
        free = ((start + step) % OBJECTS for step in range(OBJECTS))
        slots[inside] = next((slot for slot in free if slot not in used), start)
    rgb = apart(OBJECTS)[slots]
    rgb[ids == 0] = BACKGROUND
    return Drawing(rgb, np.where(ids == 0, FAINT, SHOWN).astype(np.uint8), ids)


def _slot(ids: NDArray[Any]) -> NDArray[np.uint8]:
    """Return one of the colours for each object: ids that follow each other are far apart."""
    mixed: NDArray[np.uint32] = ids.astype(np.uint32) * np.uint32(2654435769)
    return (mixed >> np.uint32(26)).astype(np.uint8)


def _like_a_neighbour(ids: NDArray[Any], slots: NDArray[np.uint8]) -> NDArray[Any]:
    """Return the larger id of each pair of neighbours with the same colour."""
    larger = []
    for axis in (0, 1):
        first, second = (slice(None, -1), slice(1, None)) if axis == 0 else (np.s_[:, :-1], np.s_[:, 1:])
        ours, theirs = ids[first], ids[second]
        same = (ours != theirs) & (slots[first] == slots[second]) & (ours != 0) & (theirs != 0)
        larger.append(np.maximum(ours[same], theirs[same]))
    return np.unique(np.concatenate(larger))


def _grown(inside: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the pixels next to a part, without the part."""
    out = np.zeros_like(inside)
    out[1:] |= inside[:-1]
    out[:-1] |= inside[1:]
    out[:, 1:] |= inside[:, :-1]
    out[:, :-1] |= inside[:, 1:]
    return out & ~inside


def _values(field: Field, pixels: NDArray[Any], look: Look) -> Drawing:
    window = look.window or window_of(field, pixels)
    plane = nearest(pixels, look.size or pixels.shape[-2:]).astype(np.float32)
    missing = np.isnan(plane) | (plane == np.float32(field.fill_number))
    steps = (np.nan_to_num(window.scaled(plane)) * 255 + 0.5).astype(np.uint8)
    return _hatched(ramp()[steps], missing, str(window))


_DRAWN: dict[str, Callable[[Field, NDArray[Any], Look], Drawing]] = {
    PICTURE: _picture,
    CLASSES: _classes,
    MULTILABEL: _multilabel,
    IDS: _ids,
    VALUES: _values,
}
