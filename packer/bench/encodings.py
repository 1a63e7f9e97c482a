"""Recommend the encodings of a pack: by where it fits, what is lost, and how fast its rows are read in turns."""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from packer.bench.loaders import TrialRunner
from packer.bench.recommend import NEAR
from packer.bench.request import MOST_WORKERS, BenchRequest
from packer.bench.settings import LOADER, LoaderSettings
from packer.progress import Progress, no_progress
from readers.contract.fields import JPEG, RAW, TILED
from readers.contract.manifest import ALL
from readers.machine import Machine

ROUNDS, BATCH = 5, 16
READING = 60.0
"""The most seconds of the first pass over the rows of a pack: they are few."""


@dataclass(frozen=True)
class EncodingResult:
    """The encoding of each field, and what was measured with a trial pack.

    The first of several is the encoding of the pack.
    """

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
        """The encodings in the words that are printed."""
        return ", ".join(f"{name}={encoding}" for name, encoding in self.encodings.items() if encoding != RAW) or RAW

    def loses(self, stored: EncodingResult) -> bool:
        """Return whether this encoding makes new JPEG files of a pack that is stored in another way."""
        before = stored.encodings
        return any(_is_jpeg(encoding) and encoding != before[name] for name, encoding in self.encodings.items())


def best_encodings(results: Sequence[EncodingResult]) -> tuple[EncodingResult, str]:
    """Return the best result with the reason. What loses something is chosen only if nothing else fits into memory."""
    stored = results[0]
    lossless = [result for result in results if not result.loses(stored)]
    if fitting := [result for result in lossless if result.fits]:
        return _smallest_as_fast(fitting), _WHY_FITS
    if fitting := [result for result in results if result.fits]:
        return _smallest_as_fast(fitting), _WHY_LOSES
    return min(results, key=lambda result: result.row_bytes), _WHY_NONE


def loader_settings(request: BenchRequest, machine: Machine, rows: int) -> LoaderSettings:
    """Return the loader to read with: the last numbers that were asked for, or a usual one."""
    threads = request.threads or (min(machine.cores, MOST_WORKERS),)
    return LoaderSettings(LOADER, min(rows, (request.batches or (BATCH,))[-1]), threads[-1])


def read_in_turns(
    request: BenchRequest, packs: Sequence[Path], settings: LoaderSettings, progress: Progress = no_progress
) -> list[tuple[float, ...]]:
    """Return the samples per second of each pack in each round, of all rows and from memory."""
    runners = [TrialRunner(replace(request, out=pack, split=ALL)) for pack in packs]
    rates: list[list[float]] = [[] for _ in packs]
    seconds = request.seconds_left() / (ROUNDS * len(packs))
    with warnings.catch_warnings(), progress("reading", ROUNDS * len(packs), "trials") as advance:
        warnings.simplefilter("ignore")
        for runner in runners:
            runner.first_pass(settings.batch, settings.workers, READING)
        for number in range(ROUNDS):
            for index in range(len(packs))[:: -1 if number % 2 else 1]:
                rates[index].append(runners[index].rate(settings, seconds))
                advance(1)
    return [tuple(pack_rates) for pack_rates in rates]


def _is_jpeg(encoding: str) -> bool:
    """Return whether rows or their tiles are JPEG files."""
    name = encoding.partition(":")[0]
    return JPEG in (name, TILED.get(name))


def _smallest_as_fast(results: Sequence[EncodingResult]) -> EncodingResult:
    """Return the smallest of the results that are read as fast as the fastest."""
    fast = NEAR * max(result.rate for result in results)
    return min((result for result in results if result.rate >= fast), key=lambda result: result.row_bytes)


_WHY_FITS = "it fits into memory, loses nothing, and no smaller encoding that does both is read as fast"
_WHY_LOSES = "nothing that loses nothing fits into memory; look at the PSNR that the build prints"
_WHY_NONE = "nothing fits into memory, and of this the least is read from the disk in every epoch"
