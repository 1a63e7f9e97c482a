"""Drill: the packer is killed at every call that changes the disk, and at random times; then it is run again.

    PYTHONPATH=tools python -m drills.kills [--random 300] [--format npy]

For every format, and for a first build, the next night's build, rollback, gc, repair and stage: SIGKILL to the command
and its workers before each call, in the middle of each write and after each call; and to builds started as users start
them, at random times. Each time the pack must be whole, as before or as after; nothing temporary may outlive the next
run, which must end as an unbroken one does, byte for byte. Exits 1 if any is not so.

--sabotage takes a safeguard away, to show that the drill finds it: `in-place` writes files in their final place, and
`manifest-first` publishes before the shard table is there.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from unittest import mock

import packer.packs.generations
import packer.publish.atomic
import packer.publish.generation
from drills.interposed import KILLED, Action, interposed, run
from drills.scenes import Scene, chosen, leftovers, options
from readers.contract.manifest import MANIFEST

STARTED = "from packer.cli import main\nprint(flush=True); main()"
OLD, NEW, WRONG = "as before", "as after", "WRONG"
COLUMNS = ("cases", "killed", OLD, NEW, WRONG)


def judged(scene: Scene, out: Path) -> tuple[str, str | None]:
    """What a killed command left, and what the next one made of it."""
    fault = scene.fault(out)
    state = NEW if scene.is_after(out) else OLD
    if fault is None:
        ended = run(scene.arguments(out))
        fault = scene.difference(out) if ended.code == 0 else f"the next run: exit code {ended.code}: {ended.words}"
    if fault is None and (left := leftovers(out)):
        fault = f"left behind: {left}"
    return state, fault


def at_every_call(scene: Scene, folder: Path, every: int) -> Counter[str]:
    """Kill before and in or after every call."""
    out, found = folder / "work" / "out", Counter[str]()
    scene.set(out)
    calls = run(scene.arguments(out), out).calls
    for action in (Action.KILL, Action.TEAR):
        for call in range(1, calls + 1, every):
            scene.set(out)
            ended = run(scene.arguments(out), out, action, call)
            _count(found, scene, out, ended.code, f"{action.name} at call {call} of {calls}")
    return found


def at_random(scene: Scene, folder: Path, times: int) -> Counter[str]:
    """Kill the process group of a real command line after a random time, counted from when it is imported."""
    out, found, dice = folder / "work" / "out", Counter[str](), random.Random(scene.name)
    scene.set(out)
    longest = _real_run(scene.arguments(out), None)[1]
    for _ in range(times):
        scene.set(out)
        seconds = dice.uniform(0, longest)
        code, _ = _real_run(scene.arguments(out), seconds)
        _count(found, scene, out, code, f"killed after {seconds:.4f} s")
    return found


def _real_run(arguments: list[str], kill_after: float | None) -> tuple[int, float]:
    clean = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    command = [sys.executable, "-c", STARTED, *arguments]
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=pipe, stderr=nothing, env=clean, start_new_session=True)
    assert process.stdout is not None
    process.stdout.readline()
    started = time.monotonic()
    try:
        process.wait(kill_after)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    return process.returncode, time.monotonic() - started


def _count(found: Counter[str], scene: Scene, out: Path, code: int, told: str) -> None:
    state, fault = judged(scene, out)
    if fault is None and code not in (0, KILLED):
        fault = f"exit code {code}"
    found.update({"cases": 1, "killed": int(code == KILLED), WRONG if fault else state: 1})
    if fault:
        print(f"{scene.name}, {told}: {fault}", file=sys.stderr)


@contextmanager
def sabotaged(how: str | None) -> Iterator[None]:
    """Without a safeguard."""
    real, real_table = packer.publish.atomic.write_atomic, packer.publish.generation._write_table
    waiting = list[Callable[[], None]]()

    def in_place(path: Path, data: str | bytes) -> None:
        path.write_bytes(data.encode() if isinstance(data, str) else data)

    def later(out: Path, digest: str, table: bytes) -> None:
        waiting.append(partial(real_table, out, digest, table))

    def then(path: Path, data: str | bytes) -> None:
        real(path, data)
        while path.name == MANIFEST and waiting:
            waiting.pop()()

    write_atomic = {"in-place": in_place, "manifest-first": then}.get(str(how), real)
    with ExitStack() as patches:
        for module in (packer.publish.generation, packer.packs.generations):
            patches.enter_context(mock.patch.object(module, "write_atomic", write_atomic))
        if how == "manifest-first":
            patches.enter_context(mock.patch.object(packer.publish.generation, "_write_table", later))
        yield


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--random", type=int, default=300, help="kills at random times; a fifth for each command")
    parser.add_argument("--every", type=int, default=1, help="only every n-th call")
    parser.add_argument("--sabotage", choices=("in-place", "manifest-first"))
    told = parser.parse_args()
    interposed()
    drills = {"every call": partial(at_every_call, every=told.every)}
    drills["random times"] = partial(at_random, times=told.random // 5)
    print(f"{'format':<7}{'command':<13}{'killed at':<14}", *(f"{column:>9}" for column in COLUMNS))
    wrong = 0
    with sabotaged(told.sabotage):
        for folder, scene in chosen(told):
            for when, drill in drills.items():
                found = drill(scene, folder)
                wrong += found[WRONG]
                counts = (f"{found[one]:>9}" for one in COLUMNS)
                print(f"{folder.name:<7}{scene.name:<13}{when:<14}", *counts, flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
