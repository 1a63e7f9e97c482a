"""Recommend the encodings of a pack: by where it fits, what is lost, and how fast its rows are read."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from packer.bench.recommend import NEAR
from readers.contract.fields import JPEG, RAW, TILED


@dataclass(frozen=True)
class EncodingResult:
    """The encoding of each field, and what was measured with a trial pack. The first of several is that of the pack."""

    encodings: Mapping[str, str]
    row_bytes: float
    pack_bytes: int
    """The bytes of all rows of the pack."""
    fits: bool
    """True if the pack fits into the memory that is available."""
    rates: tuple[float, ...]
    """The samples per second in each round."""

    @property
    def rate(self) -> float:
        """The median rate."""
        return statistics.median(self.rates)

    @property
    def words(self) -> str:
        """The encodings as they are printed."""
        return ", ".join(f"{name}={each}" for name, each in self.encodings.items() if each != RAW) or RAW

    def loses(self, stored: EncodingResult) -> bool:
        """Return whether this encoding makes new JPEG files of a pack that is stored in another way."""
        before = stored.encodings
        return any(_is_jpeg(each) and each != before[name] for name, each in self.encodings.items())


def best_encodings(results: Sequence[EncodingResult]) -> tuple[EncodingResult, str]:
    """Return the best result with the reason. What loses something is chosen only if nothing else fits into memory."""
    stored = results[0]
    lossless = [result for result in results if not result.loses(stored)]
    if fitting := [result for result in lossless if result.fits]:
        return _smallest_as_fast(fitting), _WHY_FITS
    if fitting := [result for result in results if result.fits]:
        return _smallest_as_fast(fitting), _WHY_LOSES
    return min(results, key=lambda result: result.row_bytes), _WHY_NONE


def _is_jpeg(encoding: str) -> bool:
    """Return whether rows or their tiles are JPEG files."""
    name = encoding.partition(":")[0]
    return JPEG in (name, TILED.get(name))


def _smallest_as_fast(results: Sequence[EncodingResult]) -> EncodingResult:
    """Return the smallest of the results that are read as fast as the fastest."""
    fast = NEAR * max(result.rate for result in results)
    return min((result for result in results if result.rate >= fast), key=lambda result: result.row_bytes)


_WHY_FITS = "it fits into memory, loses nothing, and nothing else of which that is true is smaller and read as fast"
_WHY_LOSES = "nothing that loses nothing fits into memory; look at the PSNR that the build prints"
_WHY_NONE = "nothing fits into memory, and of this the least is read from the disk in every epoch"
