"""Whole rows of packs that are not in memory: labels raw and as Zstandard, and pictures as JPEG, too.

    tools/run bench.cold_encodings [--rows 1000] [--rounds 5] [--format npy] [--keep FOLDER]

Rows are those of bench.encodings. Before each pass the pack is dropped from the page cache, and the rest that stays
there is counted. The reference reads the files of the raw pack in order, past the page cache (O_DIRECT), with four
requests at a time. To measure a slower disk, start it in a control group with a limit, such as
`blkio.throttle.read_bps_device`.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from program import parser
from scenes.camera import make_linked_streets
from tables import aligned, spread

from bench.cold import direct, drop_from_cache, shard_files
from bench.encodings import BATCH, ENCODINGS, SIDE, build_all
from readers import open_dataset
from readers.contract.manifest import STORAGES


def main() -> None:
    asked = parser(__doc__)
    asked.add_argument("--rows", type=int, default=1000)
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--format", choices=STORAGES, action="append")
    asked.add_argument("--keep", type=Path, help="a folder for scenes and packs, which are kept there")
    options = asked.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = options.keep or Path(temporary)
        raw = root / f"streets-{options.rows}"
        if not raw.is_dir():
            make_linked_streets(raw, options.rows)
        for storage in options.format or STORAGES:
            packs = {name: root / f"cold-{storage}-{name}" for name in ENCODINGS}
            if not all(pack.is_dir() for pack in packs.values()):
                build_all(raw, packs, storage, 1)
            files = {name: shard_files(pack) for name, pack in packs.items()}
            rates = _measure(packs, files, options.rounds)
            print(f"\n{storage}: {options.rows} rows of {SIDE}x{SIDE}")
            print(*aligned(_table(files, rates)), sep="\n", flush=True)


def _measure(packs: dict[str, Path], files: dict[str, list[Path]], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of a pass over each pack, and those of the reference, in each round."""
    seconds: dict[str, list[float]] = {name: [] for name in (*packs, "direct")}
    for number in range(rounds):
        names = list(packs)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            drop_from_cache(files[name])
            seconds[name].append(_seconds(partial(_read, packs[name], number)))
        drop_from_cache(files["raw"])
        seconds["direct"].append(_seconds(lambda: sum(direct(files["raw"]))))
    return seconds


def _seconds(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def _read(pack: Path, seed: int) -> int:
    return sum(len(images) for images, _ in open_dataset(pack, "all").loader(BATCH, shuffle=True, seed=seed))


def _table(files: dict[str, list[Path]], seconds: dict[str, list[float]]) -> list[tuple[str, ...]]:
    table: list[tuple[str, ...]] = [("", "MiB", "seconds", "MB/s", "of raw rows")]
    for name, mine in seconds.items():
        size = sum(path.stat().st_size for path in files.get(name, files["raw"]))
        rates = spread([size / each / 1e6 for each in mine])
        ratios = [other / each for each, other in zip(mine, seconds["raw"], strict=True)]
        table.append((name, f"{size / 2**20:,.0f}", spread(mine, ".2f"), rates, spread(ratios, ".2f")))
    return table


if __name__ == "__main__":
    main()
