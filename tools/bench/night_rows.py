"""The memory of a night of very many rows in which nothing changed, step by step.

    tools/run bench.night_rows --pairs 1000000 [--options "split_exact='.9,.1'"] [--folder FOLDER]

No file exists but one pair: names, headers, states of files, and the receipts and stamps of all shards are made up
(bench.planning). So only the table of rows is real, and the command that reads it. Another process looks at the memory
of the command every few milliseconds, without mapped files, which the kernel may take back. What a step takes more than
the command takes without rows, divided by the pairs, is its memory for a row.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from program import parser
from tables import markdown

from bench.cpu import cpu_seconds
from bench.machine import machine
from bench.planning import RUN, made_up, make_links, make_up
from packer.building import finish, run_build
from packer.building.run_build import build_pack
from packer.plan import make_plan
from packer.plan.make_plan import make_plan as plan_of
from packer.plan.request import request_of
from packer.plan.reuse import PreviousBuild
from packer.publish.target import make_target, prepare_target
from packer.recipe.field_rule import judged
from packer.recipe.piece import text_of
from packer.recipe.row_ref import RowRef
from packer.shards.stamps import ShardStamps, record, write_stamps
from packer.sources.files.folder import FolderSource
from readers.contract.manifest import CELLS, SHARDS
from readers.contract.receipt import SUFFIX

STATE = (64, 10**18, 10**18) * 2
"""The state of each pair: size, time and change of its files."""
OPTIONS: dict[str, Any] = {"classes": 3, "labels": "index", "size": (8, 8), "workers": 1, "on_bad": "skip"}
OPTIONS |= {"shard_size": 128 * 4 * 64}
STEPS = (
    (make_plan, "load_stamps"),
    (make_plan, "search"),
    (make_plan, "check_heads"),
    (PreviousBuild, "unchanged"),
    (make_plan, "inspect_sample"),
    (make_plan, "_specs"),
    (make_plan, "_reused"),
    (run_build, "prepare_target"),
    (finish, "judge"),
    (finish, "find"),
    (finish, "commit"),
)
TICK = 0.004
"""Seconds between two looks at the memory."""


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--pairs", type=int, default=1_000_000)
    options.add_argument("--options", default="", help="options of build_pack, as Python writes them")
    options.add_argument("--folder", type=Path, help="make a temporary folder there")
    options.add_argument("--step", choices=("shards", "night"), help="run by this program")
    chosen = options.parse_args()
    if chosen.step is not None:
        raw, more = chosen.folder / "raw", eval(f"dict({chosen.options})", {"raw": chosen.folder / "raw"})
        make_up(raw, chosen.pairs)
        FolderSource.states = made_up_states  # type: ignore[method-assign]
        (make_shards if chosen.step == "shards" else run_night)(chosen.folder, {**OPTIONS, **more})
        return
    print(machine())
    with tempfile.TemporaryDirectory(dir=chosen.folder) as temporary:
        make_links(Path(temporary) / "raw", 1)
        command = [sys.executable, RUN, "bench.night_rows", "--folder", temporary, "--options", chosen.options]
        subprocess.run([*command, "--step", "shards", "--pairs", str(chosen.pairs)], check=True)
        rows = [["step", "before", "at most", "after", "bytes a row", "CPU s"]]
        rows += night([*command, "--step", "night", "--pairs", str(chosen.pairs)], chosen.pairs)
        print("\n".join(markdown(rows, padded=False)))


def made_up_states(self: FolderSource, refs: Sequence[RowRef]) -> NDArray[np.int64]:
    return np.tile(np.array(STATE, np.int64), (len(refs), 1))


def make_shards(folder: Path, options: dict[str, Any]) -> None:
    """Write stamps and receipts of all shards, and nothing that they name."""
    out = folder / "out"
    make_target(out)
    prepare_target(out)
    request = request_of(folder / "raw", out, **options)
    plan = plan_of(request)
    source = plan.found_rows.source
    rules = judged(plan.recipe.rules, plan.recipe.place, source.sides, plan.recipe.geometry.resolution)
    for kind in (SHARDS, CELLS):
        (out / kind).mkdir(exist_ok=True)
    for spec in plan.specs:
        receipt = made_up(spec)
        (out / SHARDS / (receipt.stem + SUFFIX)).write_text(receipt.to_text())
        (out / CELLS / f"{receipt.stem}.label.{CELLS}").touch()
        records = np.zeros(len(spec.pieces), record(len(STATE)))
        records["state"], records["size"] = STATE, (8, 8)
        stamps = ShardStamps(receipt.stem, receipt.recipe, rules, source.kind, records, text_of(spec.pieces))
        write_stamps(out, stamps)


def run_night(folder: Path, options: dict[str, Any]) -> None:
    """Build again, and tell of each step when it begins and ends."""
    for place, name in STEPS:
        setattr(place, name, told(name, getattr(place, name)))
    told("all", build_pack)(folder / "raw", folder / "out", **options)


def told(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that prints a line before and after a call, and waits until the memory was looked at."""

    def call(*arguments: object, **named: object) -> object:
        started = cpu_seconds()
        tell(name, "begins")
        try:
            return function(*arguments, **named)
        finally:
            tell(name, "ends", cpu_seconds() - started)

    return call


def tell(*facts: object) -> None:
    print(json.dumps(facts), flush=True)
    sys.stdin.readline()


def night(command: list[str], pairs: int) -> list[list[str]]:
    """Run a night and watch its memory."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    assert process.stdin is not None
    assert process.stdout is not None
    peaks: list[list[int]] = []
    done = threading.Event()

    def watch() -> None:
        while not done.wait(TICK):
            now = anonymous(process.pid)
            for peak in peaks:
                peak[1] = max(peak[1], now)

    watcher = threading.Thread(target=watch)
    watcher.start()
    rows = []
    for line in process.stdout:
        name, what, *cpu = json.loads(line)
        now = anonymous(process.pid)
        if what == "begins":
            peaks.append([now, now])
        else:
            before, most = peaks.pop()
            cells = (before >> 20, max(most, now) >> 20, now >> 20, f"{(max(most, now) - before) / pairs:.0f}")
            rows.append([name, *map(str, cells), f"{cpu[0]:.1f}"])
        process.stdin.write("\n")
    done.set()
    watcher.join()
    if process.wait():
        raise SystemExit("the night failed")
    return rows


def anonymous(pid: int) -> int:
    """Return the resident memory of a process without mapped files, in bytes."""
    try:
        return int(Path(f"/proc/{pid}/status").read_text().partition("RssAnon:")[2].split()[0]) << 10
    except (OSError, IndexError):
        return 0


if __name__ == "__main__":
    main()
