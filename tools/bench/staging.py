"""`packer stage` next to `cp -r` of the same pack, on a disk and in memory, in turns.

    tools/run bench.staging [--gib 1] [--rounds 5] [--cold] [--format npy] [--keep FOLDER]

`cp -r` neither checks what it copies nor waits until it is on the disk; with `sync` it waits. The time of
`packer stage` is that of the whole command. --cold drops the pack from memory before each copy.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from program import parser
from tables import aligned

from bench.cold import drop_from_cache, large_pack, rate_table, shard_files
from readers.contract.manifest import STORAGES
from readers.staged_copies import MEMORY


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--gib", type=float, default=1)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--cold", action="store_true", help="drop the pack from memory before each copy")
    options.add_argument("--format", choices=STORAGES, default="npy")
    options.add_argument("--keep", type=Path, metavar="FOLDER", help="make the data there and keep it for the next run")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary, tempfile.TemporaryDirectory(dir=MEMORY) as memory:
        pack = large_pack(chosen.keep or Path(temporary), chosen.format, chosen.gib)
        files = shard_files(pack)
        size = sum(path.stat().st_size for path in files)
        print(f"{chosen.format}, {size / 2**30:.2f} GiB in {len(files)} files", flush=True)
        os.environ["XDG_CACHE_HOME"] = temporary
        commands = dict(ways_to_copy(pack, Path(temporary) / "copies", Path(memory) / "copies"))
        rates: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(chosen.rounds):
            for name, (folder, command) in commands.items():
                if chosen.cold:
                    drop_from_cache(files)
                rates[name].append(size / copy_seconds(command, folder))
        print("", *aligned(rate_table(rates)), sep="\n")


def ways_to_copy(pack: Path, disk: Path, memory: Path) -> Iterator[tuple[str, tuple[Path, list[str]]]]:
    """Yield the name of each candidate, the folder that it copies to, and its command."""
    copy = 'cp -r "$0" "$1"'
    stage = [sys.executable, "-m", "packer", "stage", "--quiet", str(pack)]
    yield "cp -r, and sync", (disk, ["sh", "-c", f'{copy} && sync -f "$1"', str(pack), str(disk)])
    yield "cp -r", (disk, ["sh", "-c", copy, str(pack), str(disk)])
    yield "packer stage", (disk, [*stage, str(disk)])
    yield "cp -r, into memory", (memory, ["sh", "-c", copy, str(pack), str(memory)])
    yield "packer stage, into memory", (memory, [*stage, str(memory)])


def copy_seconds(command: list[str], folder: Path) -> float:
    """Return the time of a copy into an empty folder, after all earlier writes have reached the disk."""
    folder.mkdir()
    os.sync()
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - started
    shutil.rmtree(folder)
    return seconds
