"""Streams of batches that take turns: endless, with batches ready before they are asked for."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from bench.cpu import TICK, cpu_seconds

Batches = Iterator[tuple[Any, Any]]
"""Pictures and labels, again and again."""
QUIET, LONGEST = 0.1, 10.0
"""Seconds without work after which nothing is made ahead any more, and the longest wait for them."""


@dataclass
class Stream:
    """A candidate: a function that makes its batches, and the rates of each round, in samples per second."""

    name: str
    make: Callable[[], Batches]
    base: str
    """The name of the stream that its rates are divided by."""
    goal: float | None = None
    """The smallest such ratio that is good enough; of a peer, the smallest ratio of our rate to its rate."""
    is_peer: bool = False
    ahead: int = 4
    """The batches that are ready at most when it stops: they are not counted."""
    trouble: str = ""
    rates: list[float] = field(default_factory=list)

    def start(self, check: Callable[[Any, Any], str]) -> Batches | None:
        """Return its batches once a few were checked. If it fails or they are wrong, note that, and return None."""
        try:
            batches = self.make()
            self.trouble = next(filter(None, (check(*batch) for batch in islice(batches, 3))), "")
        except Exception as error:  # noqa: BLE001 - other libraries raise what they like
            self.trouble = f"{type(error).__name__}: {error}".partition("\n")[0]
        print(f"  {self.name:44} {self.trouble or 'as expected'}", file=sys.stderr, flush=True)
        return None if self.trouble else batches

    def ratio(self, streams: dict[str, Stream]) -> float | None:
        """Return the median over all rounds of the ratio that `goal` is about."""
        pairs = list(zip(self.rates, streams[self.base].rates, strict=False))
        return statistics.median(b / a if self.is_peer else a / b for a, b in pairs) if pairs else None


def take_turns(streams: Sequence[Stream], check: Callable[[Any, Any], str], rounds: int, seconds: float) -> None:
    """Measure the streams in turns, forwards and then backwards, so a drift of the machine hits all alike."""
    started = [(stream, stream.start(check)) for stream in streams]
    running = [(stream, batches) for stream, batches in started if batches is not None]
    for number in range(rounds):
        for stream, batches in running if number % 2 == 0 else reversed(running):
            wait_until_quiet()
            stream.rates.append(rate(batches, stream.ahead, seconds))


def rate(batches: Batches, ahead: int, seconds: float) -> float:
    """Return the samples per second of batches that were not ready before."""
    for _ in islice(batches, ahead):
        pass
    started, samples = time.perf_counter(), 0
    while (passed := time.perf_counter() - started) < seconds or not samples:
        samples += len(next(batches)[0])
    return samples / passed


def wait_until_quiet() -> None:
    """Wait until the threads and workers of the last stream have nothing more to do ahead."""
    began = time.perf_counter()
    before = cpu_seconds()
    while time.perf_counter() - began < LONGEST:
        time.sleep(QUIET)
        after = cpu_seconds()
        if after - before <= 2 / TICK:
            return
        before = after


def table(streams: Sequence[Stream]) -> Iterator[tuple[str, ...]]:
    """Yield a line for each stream: its rate with the least and the most, the ratio, and the goal."""
    named = {stream.name: stream for stream in streams}
    yield "", "samples/s", "least", "most", "ratio", "goal", "of"
    for stream in streams:
        ratio = stream.ratio(named)
        if ratio is None:
            yield stream.name, "-", "", "", "", "", stream.trouble or "not measured"
            continue
        rates = (f"{number:.1f}" for number in (statistics.median(stream.rates), min(stream.rates), max(stream.rates)))
        goal = "" if stream.goal is None else f"{stream.goal:g}"
        of = f"{stream.base} / it" if stream.is_peer else stream.base
        yield stream.name, *rates, f"{ratio:.2f}", goal, of
