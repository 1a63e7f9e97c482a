"""`Header` and `FilePixels`: the facts of a picture before and after it is decoded. `Strip`: lines of one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from packer.decoding.band_choice import GRAY
from packer.decoding.grid import Grid

Pixels = NDArray[Any]
COLOURS = ("red", "green", "blue")
_CHANNELS = {1: "gray", 2: "gray with alpha", 3: "RGB", 4: "RGB with alpha"}


@dataclass(frozen=True)
class Header:
    """The facts of a picture. `channels` includes alpha and is 1 for a palette; `depth` is in bits per channel.

    `extra` of the channels are neither colours nor alpha, as in pictures of many bands.
    """

    kind: str
    stored_width: int
    stored_height: int
    depth: int
    channels: int
    is_float: bool = False
    is_signed: bool = False
    has_alpha: bool = False
    extra: int = 0
    is_lossy: bool = False
    orientation: int = 1
    """The EXIF number: 1 is upright, 5 to 8 have height and width swapped."""
    has_palette: bool = False
    white_is_zero: bool = False
    """The file holds white as 0. Decoded pixels do not."""
    slices: int | None = None
    """The number of slices, if it is the header of a volume."""
    reduction: int = 1
    """The sides are decoded this many times smaller, rounded up. Above 1 only in JPEG, where it is 2, 4 or 8."""
    grid: Grid | None = field(default=None, compare=False)
    """The place of the upright pixels in the world."""
    no_data: str = field(default="", compare=False)
    """The number that the file names for pixels without data."""
    band_names: tuple[str, ...] = ()
    """The names of all bands, if the file or its data set names them."""
    elsewhere: str = field(default="", compare=False)
    """Words for its place and the place of the image, if the headers name different ones."""
    no_data_of: tuple[str, ...] = field(default=(), compare=False)
    """The number for pixels without data of each band, if these are in files that name different ones."""

    @property
    def plain_depth(self) -> int:
        """The bits per channel; 0 of floats and signed numbers."""
        return 0 if self.is_float or self.is_signed else self.depth

    def __str__(self) -> str:
        """Describe the type of the file, such as `PNG RGB, 8 bits`."""
        channels = "palette" if self.has_palette else _CHANNELS.get(self.channels, f"{self.channels} channels")
        if self.extra or (self.channels in (2, 4) and not self.has_alpha):
            channels = f"{self.channels} bands"
        kind = {"f": "bits, float", "i": "bits, signed", "u": "bits"}[self._letter]
        turned = "" if self.orientation == 1 else ", turned by EXIF"
        return f"{self.kind} {channels}, {self.depth} {kind}{turned}"

    @property
    def dtype(self) -> str:
        """The type of the decoded numbers, such as `<u2`."""
        return f"<{self._letter}{self.depth // 8}" if self.depth > 8 else f"|{self._letter}1"

    @property
    def _letter(self) -> str:
        """The kind of the numbers, as NumPy writes it."""
        if self.is_float:
            return "f"
        return "i" if self.is_signed else "u"

    @property
    def colours(self) -> int:
        """The colours of a pixel: 3, or 1 for gray and for numbers that have no colour."""
        return 3 if self.has_palette else self.channels - self.has_alpha - self.extra

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each band of the file."""
        if self.band_names:
            return self.band_names
        if self.colours == 1 and self.extra:
            return tuple(f"band {number}" for number in range(1, self.channels + 1))
        colours = (GRAY,) if self.colours == 1 else COLOURS
        others = tuple(f"band {number}" for number in range(4, self.extra + 4))
        return (*colours, *others, *("alpha",) * self.has_alpha)

    @property
    def decoded_size(self) -> tuple[int, int]:
        """The (height, width) of the decoded pixels, before they are turned upright."""
        return -(-self.stored_height // self.reduction), -(-self.stored_width // self.reduction)

    @property
    def size(self) -> tuple[int, ...]:
        """The upright (height, width), or (depth, height, width) of a volume."""
        depth = () if self.slices is None else (self.slices,)
        if self.orientation >= 5:
            return *depth, self.stored_width, self.stored_height
        return *depth, self.stored_height, self.stored_width


@dataclass(frozen=True)
class FilePixels:
    """The pixels of a file, not yet turned upright: (H,W) numbers, (H,W,3) RGB, or (H,W,B) numbers of many bands.

    `alpha` is the channel in the file, or marks the colour that is transparent. With a palette (rows of red, green,
    blue, alpha), numbers are indices.
    """

    numbers: Pixels
    alpha: Pixels | None = None
    palette: NDArray[np.uint8] | None = None

    @property
    def opacity(self) -> Pixels | None:
        """Alpha, or None if every pixel is opaque."""
        alpha = self.alpha
        return alpha if alpha is not None and alpha.min() < np.iinfo(alpha.dtype).max else None


@dataclass(frozen=True)
class Strip:
    """Whole lines of a picture, decoded. Its header is the header of a picture of these lines alone."""

    header: Header
    stored: FilePixels


BANDS_OF_FILES = "bands of files 1"
"""The rule for recipes: the finest file of a picture decides its size, and pixels of coarser ones are repeated."""


@dataclass(frozen=True)
class BandFiles:
    """A picture whose bands are in several files: each file or lines of it, and its name."""

    names: tuple[str, ...]
    files: tuple[bytes | Strip, ...]


Picture: TypeAlias = "bytes | Pixels | Strip | BandFiles"
"""A file, an array, lines of a picture that is too large to be decoded at once, or the files of bands."""


class FileBytes(Protocol):
    """The bytes of a file, or parts of them that are read when they are asked for."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> bytes: ...
