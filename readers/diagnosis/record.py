"""`Record`: what was seen of a training, in plain numbers; every report is made of it alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from readers.contract.errors import DamagedError

VERSION = 1


@dataclass
class Totals:
    """Seconds and counts of all steps so far."""

    passes: int = 0
    steps: int = 0
    starting: float = 0.0
    """Until the first batch of each pass was there, and from the last one to the pass's end."""
    waiting: float = 0.0
    """For every other batch."""
    copying: float = 0.0
    """Bringing batches to the device and finishing them, where `to_device` does that."""
    computing: float = 0.0
    """In the user's hands."""
    gaps: int = 0
    """Steps of which it is known how long the GPU waited before them."""
    idle: float = 0.0
    """How long the GPU waited in all of these."""
    idle_steps: int = 0
    """In how many of these it did."""


@dataclass(frozen=True)
class Source:
    """Where the batches come from, as far as it tells."""

    name: str
    packed: bool
    """The rows are those of a pack: nothing is decoded."""
    own_loader: bool
    """They come out of `SegDataset.loader`."""
    workers: int | None
    """Processes, or threads of our own loader."""
    batch: int | None
    batches: int | None
    """Of a pass."""
    on_device: bool
    """`to_device` brings them there."""


@dataclass(frozen=True)
class Use:
    """What of the machine was used while steps were made, as parts of what there is."""

    seconds: float = 0.0
    cpu: float = 0.0
    own_cpu: float = 0.0
    """By the training and its worker processes."""
    stalled: float = 0.0
    """The part of the time in which some program waited for a disk."""
    read: float = 0.0
    """Bytes a second from disks, by the training and its workers."""
    available: float = 0.0
    """Bytes of memory."""
    gpu: float | None = None


@dataclass(frozen=True)
class Record:
    """One process of a training, one source of batches."""

    source: Source
    cores: float
    gpu: str | None
    totals: Totals
    steps: Sequence[Sequence[float]]
    """Begin, steps, and seconds of waiting, copying, computing and of an idle GPU."""
    samples: Sequence[Sequence[float]] = field(default=())
    """As `Samples.rows`."""

    @property
    def seconds(self) -> float:
        """Of all passes, with their beginnings."""
        totals = self.totals
        return totals.starting + totals.waiting + totals.copying + totals.computing

    def part(self, seconds: float) -> float:
        """Of all passes."""
        return seconds / self.seconds if self.seconds else 0.0

    @property
    def by_gpu(self) -> bool:
        """Whether the GPU's own events tell how long it waited."""
        return self.totals.gaps > self.totals.steps // 2

    @property
    def waited(self) -> float:
        """The part of the time that was lost on waiting for data: by the GPU, or where there is none by the program."""
        if self.by_gpu:
            each = self.totals.idle / self.totals.gaps
            return min(1.0, self.part(each * self.totals.steps))
        return self.part(self.totals.waiting)

    @property
    def use(self) -> Use:
        """While steps were made."""
        begin = self.steps[0][0] if self.steps else 0.0
        end = self.steps[-1][0] + sum(self.steps[-1][2:5]) if self.steps else 0.0
        rows = [row for row in self.samples if begin <= row[0] + row[2] / 2 <= end] or list(self.samples)
        if not rows:
            return Use()
        _, count, seconds, busy, own, stalled, read, available, gpu, knows = (
            sum(column) for column in zip(*rows, strict=True)
        )
        room = max(seconds, 1e-9) * self.cores
        return Use(
            seconds=seconds,
            cpu=min(1.0, max(busy, own) / room),
            own_cpu=min(1.0, own / room),
            stalled=min(1.0, stalled / max(seconds, 1e-9)),
            read=read / max(seconds, 1e-9),
            available=available / count,
            gpu=gpu / knows if knows else None,
        )

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return {"version": VERSION, **asdict(self)}

    @classmethod
    def from_json(cls, document: Any, path: object) -> Record:
        """The record that is in a file."""
        try:
            version, others = document["version"], {key: document[key] for key in document if key != "version"}
            source, totals = Source(**others.pop("source")), Totals(**others.pop("totals"))
            record = cls(source=source, totals=totals, **others)
            regular = _regular(record.steps, 6) and _regular(record.samples, 10)
        except (TypeError, KeyError, IndexError) as error:
            raise DamagedError(f"{path}: is not a diagnosis ({error!r})") from error
        if version != VERSION or not regular:
            raise DamagedError(f"{path}: is not a diagnosis of version {VERSION}")
        return record


def _regular(rows: Sequence[Sequence[float]], width: int) -> bool:
    return all(len(row) == width and all(isinstance(one, (int, float)) for one in row) for row in rows)
