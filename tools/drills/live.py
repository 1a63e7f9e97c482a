"""Kill trainings, and the builder of the pack that they read, at random times; and run them again.

    tools/run drills.live [--rounds 300] [--seed 1]

Two ranks read an epoch of a pack that is built while they read. At a random time one rank, both, the builder, one of
its workers, or all of them get SIGKILL; ranks are then started again. In the end the two ranks together must have read
every row once, with the pixels that `packer build` packs, the pack must have the same bytes as its, and nothing
unfinished may be left. Exits 1 if any of this fails.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from program import parser
from scenes.noise import write_noise

from drills.crash_cases import leftovers
from packer import build_pack
from readers.contract.manifest import GENERATIONS, LIVE, MANIFEST, Manifest

PAIRS, SIDE, CLASSES, RANKS = 120, 48, 4, 2
OPTIONS: dict[str, Any] = {"classes": CLASSES, "labels": "index", "shard_size": "64KiB"}
TRAINING = f"""
import sys, zlib
from readers import Window, open_dataset
train = open_dataset(sys.argv[1], pack=sys.argv[2], **{OPTIONS!r})
loader = train.loader(3, rank=int(sys.argv[3]), world_size={RANKS}, shuffle=Window(5, 3), output="numpy")
print(*[zlib.crc32(i.tobytes() + l.tobytes()) for images, labels in loader for i, l in zip(images, labels)])
"""
VICTIMS = ("a rank", "both ranks", "the builder", "a worker", "all")
PATIENCE = 300.0
"""Seconds after which a training hangs."""


@dataclass(frozen=True)
class Expected:
    """The rows of an epoch by their checksums, and the files of the pack."""

    rows: Counter[str]
    files: dict[str, bytes]

    @classmethod
    def of(cls, raw: Path, folder: Path) -> Expected:
        """Build the pack as `packer build` does, and read it."""
        build_pack(raw, folder, **OPTIONS)
        ranks = [training(raw, folder, rank).communicate()[0] for rank in range(RANKS)]
        return cls(Counter(" ".join(ranks).split()), files_of(folder))


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=300)
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    dice, wrong, seen = random.Random(chosen.seed), 0, Counter[str]()
    with tempfile.TemporaryDirectory() as temporary:
        raw, out = Path(temporary) / "raw", Path(temporary) / "out"
        for number in range(PAIRS):
            write_noise(raw, f"{number:04}", (SIDE, SIDE), CLASSES, number)
        expected = Expected.of(raw, Path(temporary) / "built")
        started = time.monotonic()
        undisturbed(raw, out)
        longest = time.monotonic() - started
        for _ in range(chosen.rounds):
            remove(out)
            victim, seconds = dice.choice(VICTIMS), dice.uniform(0, longest)
            rows = disturbed(raw, out, victim, seconds, dice)
            fault = rows if isinstance(rows, str) else difference(expected, rows, out)
            seen[victim] += 1
            if fault is not None:
                wrong += 1
                print(f"{victim} killed after {seconds:.3f} s: {fault}", flush=True)
    print(f"{chosen.rounds} rounds, {wrong} wrong: {', '.join(f'{seen[name]} of {name}' for name in VICTIMS)}")
    sys.exit(wrong > 0)


def remove(out: Path) -> None:
    """Remove a pack, into which workers of a killed builder may write for a moment."""
    until = time.monotonic() + PATIENCE
    while out.exists():
        try:
            shutil.rmtree(out)
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def training(raw: Path, out: Path, rank: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", TRAINING, str(raw), str(out), str(rank)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def undisturbed(raw: Path, out: Path) -> None:
    for process in [training(raw, out, rank) for rank in range(RANKS)]:
        process.communicate(timeout=PATIENCE)
    wait_for_end(out)


def disturbed(raw: Path, out: Path, victim: str, seconds: float, dice: random.Random) -> Counter[str] | str:
    """Kill after some seconds, and start killed ranks again. Return the rows that they read, or what went wrong."""
    ranks = [training(raw, out, rank) for rank in range(RANKS)]
    time.sleep(seconds)
    if victim in ("a rank", "both ranks", "all"):
        for process in ranks if victim != "a rank" else [dice.choice(ranks)]:
            process.kill()
    if victim in ("the builder", "a worker", "all"):
        builders = builders_of(out)
        workers = [child for builder in builders for child in children(builder)]
        for number in {"the builder": builders, "a worker": workers[-1:]}.get(victim, [*builders, *workers]):
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
    texts = []
    for rank, process in enumerate(ranks):
        text, errors = process.communicate(timeout=PATIENCE)
        if process.returncode == -signal.SIGKILL:
            process = training(raw, out, rank)
            text, errors = process.communicate(timeout=PATIENCE)
        if process.returncode:
            return f"rank {rank}: exit code {process.returncode}: {errors[-2000:]}"
        texts.append(text)
    wait_for_end(out)
    return Counter(" ".join(texts).split())


def difference(expected: Expected, rows: Counter[str], out: Path) -> str | None:
    """Return what is wrong with the rows that were read, or with the pack."""
    if rows != expected.rows:
        return f"{(expected.rows - rows).total()} rows were not read, {(rows - expected.rows).total()} more than once"
    if not (out / MANIFEST).exists():
        build_pack(out.with_name("raw"), out, **OPTIONS)  # a kill took the last step
    if not Manifest.load(out).same_data(Manifest.load(out.with_name("built"))) or files_of(out) != expected.files:
        return "the pack is another one"
    left = leftovers(out)
    return f"left over: {left}" if left else None


def files_of(out: Path) -> dict[str, bytes]:
    """Return the files that readers of a pack read."""
    paths = [*out.glob("shards/*"), *out.glob("cells/*"), *(out / GENERATIONS).glob("shards-*")]
    return {str(path.relative_to(out)): path.read_bytes() for path in paths}


def wait_for_end(out: Path) -> None:
    """Wait until no builder is left."""
    until = time.monotonic() + PATIENCE
    while builders_of(out):
        if time.monotonic() > until:
            raise SystemExit(f"a builder of {out} does not end")
        time.sleep(0.02)


def builders_of(out: Path) -> list[int]:
    """Return the processes that build this pack: they have its lock open."""
    return [
        int(path.name) for path in Path("/proc").glob("[0-9]*") if _has_open(path, (f"{out}/.lock", f"{out}/{LIVE}"))
    ]


def _has_open(process: Path, begins: tuple[str, ...]) -> bool:
    with suppress(OSError):
        if b"packer.cli.live" in (process / "cmdline").read_bytes():
            return any(str(file.readlink()).startswith(begins) for file in (process / "fd").iterdir())
    return False


def children(process: int) -> list[int]:
    """Return the processes that a process has started, and theirs."""
    with suppress(OSError):
        own = [int(number) for number in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
        return [*own, *(more for child in own for more in children(child))]
    return []


if __name__ == "__main__":
    main()
