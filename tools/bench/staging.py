"""Benchmark: `packer stage` next to `cp -r` of the same pack, on a disk and in memory, in turns.

    PYTHONPATH=tools python -m bench.staging [--gib 1] [--rounds 5] [--cold] [--format npy] [--keep FOLDER]

`cp -r` neither looks at what it copies nor waits until the disk has it; with `sync` it waits. The time of `packer
stage` is that of the whole command. --cold takes the pack out of memory before each copy.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.cold import forget, make, report
from readers.contract.manifest import SHARDS, STORAGES
from readers.staged_copies import MEMORY


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gib", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--format", choices=STORAGES, default="npy")
    parser.add_argument("--keep", type=Path, help="Where the data is made, and left for the next time.")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, tempfile.TemporaryDirectory(dir=MEMORY) as memory:
        pack = (chosen.keep or Path(temporary)) / f"cold-{chosen.format}-{chosen.gib:g}"
        if not pack.is_dir():
            make(pack.parent, pack, chosen.format, int(chosen.gib * 2**30))
        files = sorted(path for path in (pack / SHARDS).iterdir() if path.suffix != ".json")
        size = sum(path.stat().st_size for path in files)
        print(f"{chosen.format}, {size / 2**30:.2f} GiB in {len(files)} files", flush=True)
        os.environ["XDG_CACHE_HOME"] = temporary
        commands = dict(contenders(pack, Path(temporary) / "copies", Path(memory) / "copies"))
        rates: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(chosen.rounds):
            for name, (place, command) in commands.items():
                if chosen.cold:
                    forget(files)
                rates[name].append(size / seconds(command, place))
        report(rates)


def contenders(pack: Path, disk: Path, memory: Path) -> Iterator[tuple[str, tuple[Path, list[str]]]]:
    """Each with the folder that it copies to, and its command."""
    copy = 'cp -r "$0" "$1"'
    stage = [sys.executable, "-m", "packer", "stage", "--quiet", str(pack)]
    yield "cp -r, and sync", (disk, ["sh", "-c", f'{copy} && sync -f "$1"', str(pack), str(disk)])
    yield "cp -r", (disk, ["sh", "-c", copy, str(pack), str(disk)])
    yield "packer stage", (disk, [*stage, str(disk)])
    yield "cp -r, into memory", (memory, ["sh", "-c", copy, str(pack), str(memory)])
    yield "packer stage, into memory", (memory, [*stage, str(memory)])


def seconds(command: list[str], place: Path) -> float:
    """How long a copy into an empty folder takes, when nothing is left to be written of the one before."""
    place.mkdir()
    os.sync()
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    took = time.perf_counter() - started
    shutil.rmtree(place)
    return took


if __name__ == "__main__":
    main()
