"""`DicomSlice`: a DICOM file with one picture of a scan. pydicom, of the extra `dicom`, reads its header.

pydicom is Python alone, so no file can crash the process. The pixels are read here.
"""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.decoding.grid import MOST
from packer.errors import BadPair, UsageError, library_of_extra
from packer.sources.volumes.dicom_rle import unpack_rle
from readers.contract.regular_files import open_raw

NEEDED = "DICOM is read by pydicom: pip install 'segpack[dicom]'"
MOST_BYTES = 1 << 30
"""The most bytes of a file: one slice has fewer."""
MOST_SIDE = 1 << 16
WHITE_IS_LOWEST, WHITE_IS_HIGHEST = "MONOCHROME1", "MONOCHROME2"
"""The two kinds of gray. Numbers of the first are inverted, as SimpleITK does."""
_MARK, _MARK_AT = b"DICM", 128
_HEAD = 1 << 16
"""The bytes that most headers have before their pixels."""
_PIXELS = 0x7FE00010
_RLE = "1.2.840.10008.1.2.5"
_PLAIN = {
    "1.2.840.10008.1.2": (True, "<"),
    "1.2.840.10008.1.2.1": (False, "<"),
    "1.2.840.10008.1.2.2": (False, ">"),
    _RLE: (False, "<"),
}
"""The transfer syntaxes that are read: whether tags have no type, and the order of bytes."""


@dataclass(frozen=True)
class DicomSlice:
    """The facts in the header of a file, and where its pixels are."""

    path: Path
    series: str
    sides: tuple[int, int]
    """The columns and the rows."""
    bits: tuple[int, int]
    """The bits of a stored number, and how many of them count."""
    is_signed: bool
    photometric: str
    directions: tuple[float, ...]
    """The directions from column to column and from row to row: x, y and z of each."""
    position: tuple[float, ...]
    """The centre of the first pixel."""
    spacing: tuple[float, float]
    """The distance from column to column and from row to row."""
    thickness: float
    """The distance to the next slice, which the position of that slice says, too, if there is one."""
    slope: float
    intercept: float
    syntax: str
    start: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the numbers, in the order that they are returned in."""
        return np.dtype(f"<{'i' if self.is_signed else 'u'}{self.bits[0] // 8}")

    def numbers(self) -> NDArray[Any]:
        """Return the stored numbers (rows, columns)."""
        columns, rows = self.sides
        size = self.dtype.itemsize * rows * columns
        with _named(self.path), open_raw(self.path) as file:
            file.seek(self.start)
            if self.syntax == _RLE:
                raw = unpack_rle(file.read(MOST_BYTES), rows * columns, self.dtype.itemsize)
            else:
                raw = file.read(size)
            if len(raw) != size:
                raise BadPair(f"has {len(raw)} bytes of pixels; its header demands {size}")
        is_big = _PLAIN[self.syntax][1] == ">"
        stored = np.frombuffer(raw, self.dtype.newbyteorder(">" if is_big else "<")).astype(self.dtype)
        unused = self.bits[0] - self.bits[1]  # other facts may be there, such as drawings
        numbers: NDArray[Any] = (stored << unused) >> unused
        if self.photometric == WHITE_IS_LOWEST:
            numbers = ~numbers if self.is_signed else (1 << self.bits[1]) - 1 - numbers
        return numbers.astype(self.dtype, copy=False).reshape(rows, columns)


@lru_cache(maxsize=1)
def library() -> ModuleType:
    """Return pydicom, which then says nothing about odd values. Raise UsageError if it is not installed."""
    pydicom = library_of_extra("pydicom", NEEDED)
    pydicom.config.settings.reading_validation_mode = pydicom.config.IGNORE
    pydicom.config.logger.setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", module=r"pydicom\.")
    return pydicom


def dicom_tools() -> tuple[str, ...]:
    """Return the version of pydicom, for a recipe."""
    try:
        return (f"pydicom {library().__version__}", "dicom series 1")
    except UsageError:
        return ("pydicom is not installed",)


def is_dicom(path: Path) -> bool:
    """Return whether a file begins as one of DICOM."""
    with open_raw(path) as file:
        file.seek(_MARK_AT)
        return file.read(len(_MARK)) == _MARK


def read_slice(path: Path) -> DicomSlice:
    """Return the facts of a file. Raise BadPair if it is not one plain picture with a place."""
    with _named(path), open_raw(path) as file:
        if file.seek(0, 2) > MOST_BYTES:
            raise BadPair(f"has more than {MOST_BYTES:,} bytes")
        file.seek(0)
        head = file.read(_HEAD)
        if head[_MARK_AT : _MARK_AT + len(_MARK)] != _MARK:
            raise BadPair("is not a DICOM file")
        header = _header(head, is_whole=len(head) < _HEAD) or _header(head + file.read(MOST_BYTES), is_whole=True)
        if header is None:
            raise BadPair("has no pixels")
        return _checked(path, header)


def _header(head: bytes, is_whole: bool) -> _Header | None:
    """Return what is before the pixels; None if the pixels do not begin in these bytes."""
    filereader: Any = library().filereader
    file = io.BytesIO(head)
    file.seek(_MARK_AT + len(_MARK))
    meta = filereader.read_dataset(file, False, True, stop_when=lambda tag, *_: tag >> 16 > 2)
    syntax = str(meta.get("TransferSyntaxUID", ""))
    if syntax not in _PLAIN:
        name = library().uid.UID(syntax).name or "of no name"
        raise BadPair(f"has the transfer syntax {name[:80]}; plain pixels and RLE are read, so convert it")
    is_implicit, order = _PLAIN[syntax]
    seen: list[tuple[str | None, int]] = []

    def at_pixels(tag: int, kind: str | None, length: int) -> bool:
        if tag == _PIXELS:
            seen.append((kind, length))
        return tag >= _PIXELS

    try:
        values = filereader.read_dataset(file, is_implicit, order == "<", stop_when=at_pixels)
    except Exception:
        if is_whole:
            raise
        return None  # the bytes end within a value
    if not seen:
        return None
    kind, length = seen[0]
    start = file.tell() + (8 if is_implicit or kind not in ("OB", "OW", "UN") else 12)
    return _Header(values, syntax, start, length)


class _Header:
    """The values of a header, each checked when it is asked for."""

    def __init__(self, values: Any, syntax: str, start: int, length: int) -> None:
        self._values, self.syntax = values, syntax
        self.start, self.length = start, length
        """The place of the pixels, and their bytes."""

    def has(self, name: str) -> bool:
        return self._values.get(name) not in (None, "")

    def text(self, name: str) -> str:
        return str(self._values.get(name, "") or "")

    def numbers(self, name: str, count: int, otherwise: tuple[float, ...] = ()) -> tuple[float, ...]:
        """Return the finite numbers of a field."""
        if not self.has(name):
            if otherwise:
                return otherwise
            raise BadPair(f"lacks {name} in its header")
        value = self._values.get(name)
        values = [value] if isinstance(value, (int, float, str)) else list(value)
        numbers = tuple(map(float, values))
        if len(numbers) != count or not all(abs(number) < MOST for number in numbers):
            raise BadPair(f"has {name} {str(value)[:80]} in its header; expected {count} finite numbers")
        return numbers

    def whole(self, name: str, otherwise: int | None = None) -> int:
        (number,) = self.numbers(name, 1, () if otherwise is None else (otherwise,))
        if number != int(number):
            raise BadPair(f"has {name} {number} in its header; expected a whole number")
        return int(number)


def _checked(path: Path, header: _Header) -> DicomSlice:
    """Return the facts of a header. Raise BadPair for what would need another reader."""
    if header.whole("NumberOfFrames", 1) != 1:
        raise BadPair(f"has {header.whole('NumberOfFrames')} frames; a file is read that has one slice")
    photometric = header.text("PhotometricInterpretation")
    if header.whole("SamplesPerPixel", 1) != 1 or photometric not in (WHITE_IS_LOWEST, WHITE_IS_HIGHEST):
        raise BadPair(f"has the pixels {photometric[:40] or 'of no kind'}; MONOCHROME1 and MONOCHROME2 are read")
    if header.has("ModalityLUTSequence"):
        raise BadPair("has a table of values (ModalityLUTSequence); a slope and an intercept are read")
    rows, columns = header.whole("Rows"), header.whole("Columns")
    bits, used = header.whole("BitsAllocated"), header.whole("BitsStored")
    if not (0 < rows < MOST_SIDE and 0 < columns < MOST_SIDE):
        raise BadPair(f"has the sides {rows}x{columns}")
    if bits not in (8, 16, 32) or not 0 < used <= bits or header.whole("HighBit", used - 1) != used - 1:
        raise BadPair(
            f"has {used} of {bits} bits, up to bit {header.text('HighBit')}; the lowest of 8, 16 or 32 are read"
        )
    if bits == 8 and _PLAIN[header.syntax][1] == ">":
        raise BadPair("has bytes in words of the other order; write it in Explicit VR Little Endian")
    size = rows * columns * bits // 8
    if header.syntax != _RLE and header.length not in (size, size + size % 2):
        raise BadPair(f"has {header.length} bytes of pixels; its header demands {size}")
    slope, intercept = header.numbers("RescaleSlope", 1, (1.0,)) + header.numbers("RescaleIntercept", 1, (0.0,))
    if slope == 0:
        raise BadPair("has the RescaleSlope 0 in its header")
    down, right = header.numbers("PixelSpacing", 2)
    (thickness,) = header.numbers("SpacingBetweenSlices", 1, header.numbers("SliceThickness", 1, (1.0,)))
    return DicomSlice(
        path,
        header.text("SeriesInstanceUID"),
        (columns, rows),
        (bits, used),
        header.whole("PixelRepresentation") == 1,
        photometric,
        header.numbers("ImageOrientationPatient", 6),
        header.numbers("ImagePositionPatient", 3),
        (right, down),
        abs(thickness) or 1.0,
        slope,
        intercept,
        header.syntax,
        header.start,
    )


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Put the name of a file in front of the reason why it is bad, also if pydicom has no word for it."""
    try:
        yield
    except BadPair as bad:
        raise bad.because(f"{path.name}: {bad}") from None
    except (OSError, UsageError):
        raise
    except Exception as error:
        raise BadPair(f"{path.name}: is damaged, or not what pydicom reads ({str(error)[:200]})") from error
