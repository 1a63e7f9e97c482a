"""Build into a store that fails, loses replies and refuses what it has done, until 1,000 faults are counted.

    tools/run drills.store_faults [--faults 1000] [--share 0.08]

Every round has a new store in memory. Two coordinators build the same pairs into it at the same moment, and start again
as long as they end with exit code 75. In the end there must be one manifest, with the data of a local build, whose
generation is kept; every shard and receipt must have the bytes of a local build, and `packer verify` must find nothing.
Exits 1 if any of this fails.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

from scenes.tiny import make_tiny

import packer.publish.bucket
import packer.workers.run
from drills.made_stores import FaultyStore, MemoryStore
from packer import build_pack, verify_pack
from packer.errors import BusyError
from packer.publish.generation import current_manifest
from packer.publish.local_mirror import sizes_of_pack
from packer.workers.in_process import InProcess
from readers.contract.leftovers import MAX_AGE
from readers.contract.manifest import Manifest, generation_path
from readers.stores.store import Store

MOST_STARTS = 100


def build_until_done(raw: Path, store: Store, scratch: Path) -> int:
    """Build, again after each exit code 75. Return the number of starts."""
    for starts in range(1, MOST_STARTS):
        try:
            build_pack(raw, "memory://drill", shard_size="12KB", workers=2, scratch=scratch)
        except BusyError:
            continue
        return starts
    raise SystemExit(f"no build was published in {MOST_STARTS} starts")


def fault_of(plain: MemoryStore, local: Path, folder: Path) -> str | None:
    """Return what is wrong with the pack in the store."""
    manifest = current_manifest(plain)
    if manifest is None or not manifest.same_data(Manifest.load(local)):
        return "the manifest is not that of a local build"
    kept = generation_path(Path(), manifest.generation).as_posix()
    if plain.objects[kept][0] != plain.objects["manifest.json"][0]:
        return f"{kept} is not the manifest"
    for name, (data, tag, when) in plain.objects.items():
        plain.objects[name] = data, tag, when - 2 * MAX_AGE
    sizes_of_pack(plain)  # deletes what is a day old: a probe stays if the store does not answer it
    left = [name for name in plain.objects if name.startswith(".") and name != ".segpack"]
    if left:
        return f"{left} is left"
    for path in sorted((local / "shards").iterdir()):
        if plain.objects[f"shards/{path.name}"][0] != path.read_bytes():
            return f"shards/{path.name} has other bytes"
    for name, (data, _, _) in plain.objects.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    damage = verify_pack(folder)
    return f"verify: {damage[0].message}" if damage else None


def drill(faults: int, share: float, work: Path, seed: int = 1) -> tuple[Counter[str], list[str]]:
    """Build until enough faults were made. Return what was counted, and what went wrong."""
    raw, local, dice = work / "raw", work / "local", random.Random(seed)
    make_tiny(raw, {"train": 9, "val": 4})
    found, wrong = Counter[str](), list[str]()
    with (
        mock.patch.object(packer.workers.run, "POOL", InProcess),
        mock.patch("readers.stores.waiting.FIRST_PAUSE", 0),
    ):
        build_pack(raw, local, shard_size="12KB", workers=2)
        while sum(found[name] for name in found if ":" in name) < faults:
            plain, scratch = MemoryStore(), work / f"round-{found['rounds']}"
            store = FaultyStore(plain, random.Random(dice.random()), share)
            (scratch / "copy").mkdir(parents=True)
            with (
                mock.patch.object(packer.publish.bucket, "open_store", lambda url, store=store: store),
                ThreadPoolExecutor(2) as threads,
            ):
                builds = [threads.submit(build_until_done, raw, store, scratch) for _ in range(2)]
            found.update(store.faults)
            found.update(rounds=1, starts=sum(build.result() for build in builds))
            fault = fault_of(plain, local, scratch / "copy")
            wrong += [f"round {found['rounds']}: {fault}"] if fault else []
    return found, wrong


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--faults", type=int, default=1000)
    options.add_argument("--share", type=float, default=0.08, help="the share of calls that fail")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as work:
        found, wrong = drill(chosen.faults, chosen.share, Path(work))
    for name, count in sorted(found.items()):
        print(f"{count:6}  {name}")
    print(*wrong or ["every round: one manifest, every digest right"], sep="\n")
    sys.exit(1 if wrong else 0)
