"""`Record`: the measurements of a training as plain numbers, from which every report is made."""

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
    """From the start of each pass to its first batch, and from its last batch to its end."""
    waiting: float = 0.0
    """Waiting for all other batches."""
    copying: float = 0.0
    """Copying batches to the device and finishing them, if `to_device` is used."""
    computing: float = 0.0
    """From the arrival of a batch to the request for the next one."""
    gaps: int = 0
    """The number of steps for which it was measured how long the GPU waited before them."""
    idle: float = 0.0
    """Seconds that the GPU waited before these steps."""
    idle_steps: int = 0
    """The number of these steps before which the GPU waited."""


@dataclass(frozen=True)
class BatchSource:
    """The loader of the batches, if it is known."""

    name: str
    packed: bool
    """The rows come from a pack, so nothing is decoded."""
    own_loader: bool
    """The loader is `SegDataset.loader`."""
    workers: int | None
    """Worker processes, or threads of our own loader."""
    batch: int | None
    """Rows of a batch."""
    batches: int | None
    """Batches of a pass."""
    on_device: bool
    """`to_device` copies the batches to the device."""
    steps: Sequence[str] = ()
    """The options of our own loader that cost the CPU more than a copy, such as `colour=`."""


@dataclass(frozen=True)
class MachineUse:
    """The use of the machine during the steps, as fractions of what it has."""

    seconds: float = 0.0
    cpu: float = 0.0
    own_cpu: float = 0.0
    """The fraction used by the training and its worker processes."""
    stalled: float = 0.0
    """The fraction of the time in which any program waited for a disk."""
    read: float = 0.0
    """Bytes a second that the training and its workers read from disks."""
    available: float = 0.0
    """Bytes of free memory."""
    gpu: float | None = None


@dataclass(frozen=True)
class Record:
    """The measurements of one loader in one process."""

    source: BatchSource
    cores: float
    gpu: str | None
    totals: Totals
    steps: Sequence[Sequence[float]]
    """Rows of: begin, steps, and seconds of waiting, copying, computing and of an idle GPU."""
    samples: Sequence[Sequence[float]] = field(default=())
    """The rows of `Samples.rows`."""

    @property
    def seconds(self) -> float:
        """The seconds of all passes, with their starts."""
        totals = self.totals
        return totals.starting + totals.waiting + totals.copying + totals.computing

    def part(self, seconds: float) -> float:
        """Return seconds as a fraction of all passes."""
        return seconds / self.seconds if self.seconds else 0.0

    @property
    def by_gpu(self) -> bool:
        """True if the GPU's own events measure how long it waited."""
        return self.totals.gaps > self.totals.steps // 2

    @property
    def waited(self) -> float:
        """The fraction of the time spent waiting for data: by the GPU if its events measure it, else by the program."""
        if self.by_gpu:
            idle = self.totals.idle / self.totals.gaps
            return min(1.0, self.part(idle * self.totals.steps))
        return self.part(self.totals.waiting)

    @property
    def use(self) -> MachineUse:
        """The use of the machine during the steps."""
        begin = self.steps[0][0] if self.steps else 0.0
        end = self.steps[-1][0] + sum(self.steps[-1][2:5]) if self.steps else 0.0
        rows = [row for row in self.samples if begin <= row[0] + row[2] / 2 <= end] or list(self.samples)
        if not rows:
            return MachineUse()
        _, count, seconds, busy, own, stalled, read, available, gpu, knows = (
            sum(column) for column in zip(*rows, strict=True)
        )
        capacity = max(seconds, 1e-9) * self.cores
        return MachineUse(
            seconds=seconds,
            cpu=min(1.0, max(busy, own) / capacity),
            own_cpu=min(1.0, own / capacity),
            stalled=min(1.0, stalled / max(seconds, 1e-9)),
            read=read / max(seconds, 1e-9),
            available=available / count,
            gpu=gpu / knows if knows else None,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON."""
        return {"version": VERSION, **asdict(self)}

    @classmethod
    def from_json(cls, document: Any, path: object) -> Record:
        """Read the record in a file."""
        try:
            version, others = document["version"], {key: document[key] for key in document if key != "version"}
            source, totals = BatchSource(**others.pop("source")), Totals(**others.pop("totals"))
            record = cls(source=source, totals=totals, **others)
            regular = _regular(record.steps, 6) and _regular(record.samples, 10)
        except (TypeError, KeyError, IndexError) as error:
            raise DamagedError(f"{path}: is not a diagnosis ({error!r})") from error
        if version != VERSION or not regular:
            raise DamagedError(f"{path}: is not a diagnosis of version {VERSION}")
        return record


def _regular(rows: Sequence[Sequence[float]], width: int) -> bool:
    return all(len(row) == width and all(isinstance(number, (int, float)) for number in row) for row in rows)
