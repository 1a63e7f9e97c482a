"""`ImageRules`: the user's choices for images: range of numbers, alpha, largest size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from packer.decoding.band_choice import BandChoice, band_choice, bands_text
from packer.errors import BadPair
from readers.contract.json_entry import Entry

ALPHAS = ("refuse", "drop")
EXACT, FAST = "exact", "fast"
DECODES = (EXACT, FAST)
MOST_PIXELS = 1 << 28
"""The most pixels of a picture, by default. A header may claim any size; 60,000 x 60,000 pixels fill the memory."""


def check_size(height: int, width: int, channels: int, max_pixels: int, verb: str = "claims") -> None:
    """Refuse a picture of more pixels than allowed, or of more numbers than four channels of these pixels have."""
    if not 0 < height * width <= max_pixels:
        raise BadPair(f"{verb} {width}x{height} pixels; 1 to {max_pixels} are allowed (--max-pixels)")
    if height * width * channels > 4 * max_pixels:
        raise BadPair(
            f"{verb} {width}x{height} pixels of {channels} channels, which count as {channels / 4:g} pictures; "
            f"1 to {max_pixels} pixels are allowed (--max-pixels)"
        )


class FileRules(NamedTuple):
    """The rules for all files of a build."""

    max_pixels: int
    """Larger pictures are rejected."""
    slide_level: int
    """The level of a slide that is its picture."""


@dataclass(frozen=True)
class ImageRules:
    """`image_range` holds the numbers in the file that become 0 and 1; for all of 8 bits these are 0 and 255."""

    image_range: tuple[float, float] | None = None
    alpha: str = "refuse"
    max_pixels: int = MOST_PIXELS
    decode: str = EXACT
    """FAST decodes a large JPEG at a half, a quarter or an eighth of its size, before it is scaled."""
    bands: BandChoice | None = None
    """The bands to store unchanged; None stores red, green and blue of 8 bits."""
    slide_level: int = 0
    """The level that is the picture of a slide."""
    no_data: str = ""
    """The number of pixels without data: a stated one, or `file` for the one that each file names; empty if all have
    data. Floating-point numbers of such pixels become NaN, others stay."""

    def to_json(self) -> dict[str, Any]:
        return {
            "image_range": None if self.image_range is None else list(map(float, self.image_range)),
            "alpha": self.alpha,
            "max_pixels": self.max_pixels,
            **({} if self.decode == EXACT else {"decode": self.decode}),
            **({} if self.bands is None else {"bands": bands_text(self.bands)}),
            **({"slide_level": self.slide_level} if self.slide_level else {}),
            **({"no_data": self.no_data} if self.no_data else {}),
        }

    @classmethod
    def from_json(cls, entry: Entry) -> ImageRules:
        limits = entry.maybe("image_range", entry.numbers)
        if limits is not None and (len(limits) != 2 or not limits[0] < limits[1]):
            entry.problem("image_range", "expected a low and a higher number")
            limits = None
        rules = cls(
            image_range=None if limits is None else (limits[0], limits[1]),
            alpha=entry.choice("alpha", ALPHAS),
            max_pixels=entry.whole("max_pixels", least=1),
            decode=entry.choice("decode", DECODES) if entry.has("decode") else EXACT,
            bands=_bands(entry) if entry.has("bands") else None,
            slide_level=entry.whole("slide_level") if entry.has("slide_level") else 0,
            no_data=entry.text("no_data") if entry.has("no_data") else "",
        )
        entry.close()
        return rules


def _bands(entry: Entry) -> BandChoice | None:
    try:
        return band_choice(entry.text("bands"))
    except ValueError as error:
        entry.problem("bands", str(error))
        return None
