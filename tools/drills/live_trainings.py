"""The trainings of drills/live.py: programs that read a live pack, and the processes that build it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import warnings
import zlib
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from readers import ReadError, Window, open_dataset

SIDE, CLASSES, RANKS = 48, 4, 2
OPTIONS: dict[str, Any] = {"classes": CLASSES, "labels": "index", "shard_size": "64KiB"}
OTHER: dict[str, Any] = {**OPTIONS, "size": (SIDE // 2, SIDE // 2)}
PATIENCE = 300.0
"""Seconds after which a training hangs."""
FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Task:
    """The rows that one program reads, and their order."""

    rank: int = 0
    ranks: int = RANKS
    pause: float = 0
    """Seconds between batches: a busy program does not wait for the builder."""
    shuffle: bool | Window = Window(5, 3)  # noqa: RUF009 - it is frozen
    is_other: bool = False
    """True for the options OTHER."""


@dataclass(frozen=True)
class Ending:
    """The checksums of the rows that a program has read, and when its epoch ended; or why it was refused."""

    rows: tuple[int, ...] = ()
    time: float = 0
    refusal: str = ""


class Training:
    """A program in a process of its own."""

    def __init__(self, raw: Path, out: Path, task: Task) -> None:
        self.raw, self.out, self.task = raw, out, task
        self._pipe, theirs = FORK.Pipe(duplex=False)
        self._process = FORK.Process(target=train, args=(raw, out, task, theirs))
        self._process.start()
        theirs.close()

    def has_opened(self) -> bool:
        """Wait until it has opened the pack, or has ended."""
        return self._pipe.poll(PATIENCE)

    def send(self, number: signal.Signals) -> None:
        """Send a signal, unless it has ended."""
        with suppress(ProcessLookupError):
            os.kill(self._process.pid or 0, number)

    def ending(self) -> Ending:
        """Wait for its end; start it again if it was killed."""
        answers = []
        with suppress(EOFError):
            while self._pipe.poll(PATIENCE):
                answers.append(self._pipe.recv())
        self._process.join(PATIENCE)
        if self._process.exitcode == -signal.SIGKILL:
            return Training(self.raw, self.out, self.task).ending()
        if not answers or not isinstance(answers[-1], Ending):
            self.send(signal.SIGKILL)
            raise SystemExit(f"{self.task}: exit code {self._process.exitcode}, after {len(answers)} answers")
        return answers[-1]


def train(raw: Path, out: Path, task: Task, answers: Connection) -> None:
    """Read an epoch, and answer twice: when the pack is open, and at the end."""
    warnings.simplefilter("ignore")
    try:
        rows = open_dataset(raw, pack=out, **(OTHER if task.is_other else OPTIONS))
    except ReadError as error:
        answers.send(Ending(refusal=str(error)))
        return
    answers.send("open")
    sums: list[int] = []
    for batch in rows.loader(3, rank=task.rank, world_size=task.ranks, shuffle=task.shuffle, output="numpy"):
        sums += [zlib.crc32(image.tobytes() + label.tobytes()) for image, label in zip(*batch, strict=True)]
        time.sleep(task.pause)
    answers.send(Ending(tuple(sums), time.monotonic()))


def builders_of(out: Path) -> list[int]:
    """Return the processes that build this pack."""
    found, wanted = [], f"packer.cli.live\0{out}\0".encode()
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (path / "cmdline").read_bytes().endswith(wanted):
                found.append(int(path.name))
    return found


def children(process: int) -> list[int]:
    """Return the processes that a process has started, and theirs."""
    with suppress(OSError):
        own = [int(number) for number in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
        return [*own, *(more for child in own for more in children(child))]
    return []
