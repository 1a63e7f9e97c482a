"""Plan and publish a pack of very many rows of which no pixel exists: CPU seconds, memory, and the bytes of all tables.

    tools/run bench.planning [--keys 1000000] [--length 20]     rows that a function returns
    tools/run bench.planning --pairs 1000000 [--folder FOLDER]  pairs of files: links to one image and one label
    tools/run bench.planning --pairs 10000000 --made-up         no file but one pair: the names and headers are made up

With --pairs, the files lie in a temporary folder below FOLDER, on a file system that allows so many links, such as
/dev/shm. A first process finds and plans them, with every header, and writes the plan folder. A second one reads the
specs of all shards from it, makes up their receipts, reads these one by one, looks for images that are the same, and
publishes. Memory is that of the process without mapped files, which the kernel may take back; *before* is that when
everything is imported.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from math import gcd
from pathlib import Path

import cv2
import numpy as np
from program import parser

from bench.cpu import cpu_seconds
from bench.free_rows import CLASSES, SIDE, load
from bench.machine import machine
from packer import Rows
from packer.data_checks.find_mistakes import find_mistakes
from packer.data_checks.image_hashes import ImageHashes
from packer.pairs.files import JOINED, FileNames, RawFiles
from packer.plan import find_rows
from packer.plan.make_plan import make_plan
from packer.plan.request import request_of
from packer.plan.write_plan import write_plan
from packer.publish.generation import commit
from packer.publish.target import make_target
from packer.recipe.piece import keys_of
from packer.recipe.plan_folder import PlanFolder
from packer.recipe.row_ref import RowRef
from packer.recipe.shard_spec import ShardSpec
from packer.recipe.source import Heads
from packer.sources.files.folder import FolderSource
from packer.spill.long_text import LongText
from readers.contract.json_entry import fingerprint
from readers.contract.manifest import GENERATIONS
from readers.contract.receipt import Receipt, RowInput
from readers.contract.receipt_facts import AllReceipts
from readers.contract.statistics import no_rows

RUN = str(Path(__file__).parents[1] / "run")
KINDS, SPLITS = ("images", "masks"), ("train", "val")
TICK = 0.01
"""Seconds between two looks at the memory."""


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--keys", type=int, default=1_000_000)
    options.add_argument("--length", type=int, default=20, help="the characters of a key")
    options.add_argument("--pairs", type=int)
    options.add_argument("--made-up", action="store_true")
    options.add_argument("--folder", type=Path, default=Path("/dev/shm"))
    options.add_argument("--step", choices=("plan", "commit"), help="run by this program")
    chosen = options.parse_args()
    if chosen.step is not None:
        if chosen.made_up:
            make_up(chosen.folder / "raw", chosen.pairs)
        print(json.dumps((plan_files if chosen.step == "plan" else publish)(chosen.folder)))
        return
    print(machine())
    with tempfile.TemporaryDirectory(dir=chosen.folder if chosen.pairs else None) as temporary:
        if chosen.pairs is None:
            print(plan_keys(Path(temporary), chosen))
            return
        make_links(Path(temporary) / "raw", 1 if chosen.made_up else chosen.pairs)
        for step in ("plan", "commit"):
            command = [sys.executable, RUN, "bench.planning", "--step", step, "--folder", temporary]
            command += ["--pairs", str(chosen.pairs), *(["--made-up"] if chosen.made_up else [])]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            facts = {"pairs": chosen.pairs, **json.loads(done.stdout)}
            numbers = (
                f"{value:,} {name}" if isinstance(value, int) else f"{value} {name}" for name, value in facts.items()
            )
            print(f"{step}: {', '.join(numbers)}", flush=True)


def plan_keys(folder: Path, chosen: Namespace) -> str:
    def keys() -> Iterator[str]:
        return (f"{number:0{chosen.length}}" for number in range(chosen.keys))

    request = request_of(Rows(keys, load, sizes=(SIDE, SIDE)), folder / "out", classes=CLASSES, labels="index")
    with measured() as found:
        plan = make_plan(request)
    return f"{plan.pieces} keys of {chosen.length} characters in {len(plan.specs)} shards: {found.text}"


def make_links(raw: Path, pairs: int) -> None:
    """Make pairs of files that all are links to one image and one label of 8x8."""
    for kind, pixels in zip(KINDS, (np.zeros((8, 8, 3), np.uint8), np.zeros((8, 8), np.uint8)), strict=True):
        for split in SPLITS:
            (raw / kind / split).mkdir(parents=True)
        cv2.imwrite(f"{raw}/{kind}.png", pixels)
        for number in range(pairs):
            os.link(f"{raw}/{kind}.png", f"{raw}/{kind}/{split_of(number)}/{name_of(number)}")
        (raw / f"{kind}.png").unlink()


def name_of(number: int) -> str:
    return f"street_{number:010d}.png"


def split_of(number: int) -> str:
    return "train" if number % 10 else "val"


def make_up(raw: Path, pairs: int) -> None:
    """List names that no file has, and read the headers of the only pair for each of them."""
    header = FolderSource(raw).header
    heads = header(f"images/val/{name_of(0)}"), header(f"masks/val/{name_of(0)}")

    def list_names(raw: Path, leave_out: Path | None = None) -> RawFiles:
        text = LongText()
        found = {f"{kind}/{split}/": FileNames(text) for kind in KINDS for split in SPLITS}
        last: dict[str, list[str]] = {folder: [] for folder in found}
        step = next(step for step in range(int(0.6 * pairs), pairs + 2) if gcd(step, pairs) == 1)
        for index in range(pairs):
            number = index * step % pairs  # as a folder lists them: in no order
            for kind in KINDS:
                folder = f"{kind}/{split_of(number)}/"
                last[folder].append(name_of(number))
                if len(last[folder]) == JOINED:
                    found[folder].add(last.pop(folder))
                    last[folder] = []
        for folder, names in last.items():
            found[folder].add(names)
        return RawFiles(found)

    def read_heads(self: FolderSource, refs: Sequence[RowRef]) -> Iterator[Heads]:
        return repeat(heads, len(refs))

    find_rows.find_files = list_names  # type: ignore[attr-defined]
    FolderSource.heads = read_heads  # type: ignore[method-assign]


def plan_files(folder: Path) -> dict[str, object]:
    """Plan a build of the files, and write the plan. Shards have about 128 rows, as those of 512x512 have."""
    raw, out = folder / "raw", folder / "out"
    options = {"classes": 3, "labels": "index", "size": (8, 8), "shard_size": 128 * 4 * 64, "workers": 1}
    options |= {"on_bad": "skip"}  # a sample of pairs is decoded, and made-up files are not there
    with measured() as found:
        plan = make_plan(request_of(raw, out, **options))
        written = write_plan(plan, folder / "plan")
    seconds = {name: round(value, 1) for name, value in plan.seconds.items()}
    files = sum(path.stat().st_size for path in written.folder.iterdir())
    return {"shards": len(plan.specs), **found.facts, "seconds": seconds, "bytes of the plan": files}


def publish(folder: Path) -> dict[str, object]:
    """Publish made-up receipts of all shards of the plan."""
    plan, out = PlanFolder.open(folder / "plan"), folder / "out"
    make_target(out)
    (out / GENERATIONS).mkdir(exist_ok=True)
    texts = 0
    with measured() as found:
        receipts = AllReceipts()
        for number in range(len(plan)):
            text = made_up(plan.spec(number)).to_text()
            texts += len(text)
            receipts.add(number, Receipt.from_text(text, "receipt"))
        findings = find_mistakes(ImageHashes.of_receipts(receipts, lambda shard: keys_of(plan.spec(shard).pieces)), {})
        manifest = commit(out, plan.facts.recipe, receipts)
    assert not findings.items
    tables = sum(path.stat().st_size for path in (out / GENERATIONS).glob("shards-*"))
    sizes = {
        "bytes of the receipts": texts,
        "bytes of the table": tables,
        "bytes of the manifest": len(manifest.to_text()),
    }
    return {"shards": len(plan), **found.facts, **sizes}


def made_up(spec: ShardSpec) -> Receipt:
    """Return a receipt of a shard that was never built. No two images are the same."""
    keys = [piece.key for piece in spec.pieces]
    digests = [fingerprint(key) for key in keys]
    sums = tuple(int(digest[:8], 16) for digest in digests)
    return Receipt(
        split=spec.split,
        fingerprint=fingerprint(keys)[:32],
        storage=spec.recipe.storage,
        recipe=spec.recipe.fingerprint(),
        fields=tuple(field.name for field in spec.fields),
        sources=tuple(RowInput(key, digest, digest) for key, digest in zip(keys, digests, strict=True)),
        rejects=(),
        notes=(),
        files=(),
        crc32={field.name: sums for field in spec.fields},
        looks=tuple(digest[:24] for digest in digests),
        statistics=no_rows(spec.fields),
    )


@dataclass
class Measured:
    before: int
    peak: int = 0
    cpu: float = 0.0

    @property
    def facts(self) -> dict[str, object]:
        return {"s of CPU": round(self.cpu, 1), "MiB": self.peak >> 10, "MiB before": self.before >> 10}

    @property
    def text(self) -> str:
        return f"{self.cpu:.1f} s of CPU, at most {self.peak >> 10} MiB (before: {self.before >> 10} MiB)"


@contextmanager
def measured() -> Iterator[Measured]:
    """Measure the CPU seconds and the memory of what is done in this context."""
    found, done, started = Measured(anonymous()), threading.Event(), cpu_seconds()

    def watch() -> None:
        while not done.wait(TICK):
            found.peak = max(found.peak, anonymous())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield found
    finally:
        done.set()
        thread.join()
        found.cpu = cpu_seconds() - started


def anonymous() -> int:
    """Return the resident memory of this process without mapped files, in KiB."""
    return int(Path("/proc/self/status").read_text().partition("RssAnon:")[2].split()[0])
