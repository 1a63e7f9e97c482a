"""A pack becomes a pack of another format, next to a copy of its files, both until everything is on the disk.

    tools/run bench.converting [--gib 2] [--rounds 5] [--formats arrow npy] [--keep FOLDER]

The copy is `cp -r`, then fsync of every file. Nothing is recoded: rows keep their size and type. *command* is the whole
of `packer build --from`, *shards* only its time from the first shard that is handed out to the last receipt. *cpu* is
the CPU time of `cp`, or of the workers. With `--gib 0.25` the start of the command counts most. The bench fails if the
checksums of the rows are not those of the source.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from program import parser
from tables import aligned, spread

from bench.cold import large_pack
from bench.machine import machine
from bench.run_build import run_build
from bench.write_job import bring_to_disk
from readers.contract.manifest import SHARDS, STORAGES, Manifest
from readers.contract.receipt import SUFFIX, Receipt


@dataclass(frozen=True)
class Turn:
    """Seconds of a whole command, and of the part in which shards are written; CPU seconds."""

    command: float
    shards: float
    cpu: float


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--gib", type=float, default=2)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--formats", nargs="+", choices=STORAGES, default=list(STORAGES))
    options.add_argument("--source", choices=STORAGES, default="npy", help="the format of the pack that is converted")
    options.add_argument("--keep", type=Path, metavar="FOLDER", help="make the data there and keep it for the next run")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        pack = large_pack(chosen.keep or Path(temporary), chosen.source, chosen.gib)
        manifest, out = Manifest.load(pack), Path(temporary) / "out"
        print(
            f"{chosen.source}, {manifest.rows} rows, {manifest.bytes / 2**30:.2f} GiB", machine(), sep="\n", flush=True
        )
        turns: dict[str, list[Turn]] = {"cp -r, fsync": []}
        for _ in range(chosen.rounds):
            turns["cp -r, fsync"].append(copied(pack, out))
            for storage in chosen.formats:
                turns.setdefault(storage, []).append(converted(pack, out, storage))
        print("", *aligned(table(turns, manifest.rows)), sep="\n")


def copied(pack: Path, out: Path) -> Turn:
    """Copy a pack until it is on the disk."""
    prepare(out)
    started, spent = time.perf_counter(), os.times()
    subprocess.run(["cp", "-r", str(pack), str(out)], check=True)
    bring_to_disk(out)
    seconds, now = time.perf_counter() - started, os.times()
    used = sum(now[:4]) - sum(spent[:4])
    return Turn(seconds, seconds, used)


def converted(pack: Path, out: Path, storage: str) -> Turn:
    """Convert a pack, and compare its rows."""
    prepare(out)
    run = run_build(["build", "--from", pack, out, "--format", storage])
    if checksums(out) != checksums(pack):
        raise RuntimeError(f"{storage}: the rows differ from those of {pack}")
    return Turn(run.seconds, run.build_seconds, run.cpu)


def prepare(out: Path) -> None:
    """Delete what the turn before wrote. No turn waits for it to reach the disk."""
    shutil.rmtree(out, ignore_errors=True)
    os.sync()


def checksums(pack: Path) -> dict[tuple[str, str], tuple[int, ...]]:
    """Return the CRC of each field of each row by split and key."""
    receipts = [Receipt.load(path) for path in (pack / SHARDS).glob(f"*{SUFFIX}")]
    return {
        (receipt.split, key): sums
        for receipt in receipts
        for key, sums in zip(receipt.keys, receipt.row_checksums, strict=True)
    }


def table(turns: dict[str, list[Turn]], rows: int) -> list[tuple[str, ...]]:
    """Compare all candidates with the first, turn by turn."""
    reference = next(iter(turns.values()))
    lines: list[tuple[str, ...]] = [
        ("", "command, rows/s", "of first", "shards, rows/s", "of first", "start-up", "cpu ms")
    ]
    for name, mine in turns.items():
        cells = [name]
        for part in ("command", "shards"):
            seconds, others = ([float(getattr(turn, part)) for turn in turns] for turns in (mine, reference))
            cells.append(spread([rows / each for each in seconds]))
            cells.append(spread([other / each for other, each in zip(others, seconds, strict=True)], ".2f"))
        start = median(turn.command - turn.shards for turn in mine)
        lines.append((*cells, f"{start:.2f} s", f"{1000 * median(turn.cpu for turn in mine) / rows:.2f}"))
    return lines
