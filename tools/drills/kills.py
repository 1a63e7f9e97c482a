"""Kill commands at every call that changes the disk, and at random times, and run them again.

    tools/run drills.kills [--random 300] [--format npy] [--source pack]

For every format, and for a first build, the next build, rollback, gc, repair and stage: SIGKILL to the command and its
workers before each call, in the middle of each write and after each call; and to commands that are started as users
start them, at random times. Each time the pack must be complete, in the state before or after the command. The next run
must leave no temporary file, and give the bytes of an undisturbed one. Exits 1 if any of this fails.

--sabotage removes a safeguard, to show that the drill detects it: `in-place` writes files under their final names, and
`manifest-first` publishes before the shard table exists.
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
from typing import Any
from unittest import mock

from program import TOOLS
from tables import line

import packer.publish.generation
from drills.crash_cases import CrashCase, case_parser, chosen_cases, leftovers
from drills.interpose import KILLED, Action, interposed, run
from readers.contract.manifest import MANIFEST
from readers.stores.folder_store import FolderStore
from readers.stores.store import Version

STARTED = f"import sys; sys.path.insert(0, {str(TOOLS)!r}); from drills.sources import announced; announced()"
OLD, NEW, WRONG = "as before", "as after", "WRONG"
COLUMNS = ("cases", "killed", OLD, NEW, WRONG)
WIDTHS = (-6, -12, -13, *[9] * len(COLUMNS))


def judged(case: CrashCase, out: Path) -> tuple[str, str | None]:
    """Return the state that a killed command left, and what is wrong with it or with the next run."""
    fault = case.fault(out)
    state = NEW if case.is_after(out) else OLD
    if fault is None:
        ended = run(case.arguments(out))
        fault = case.difference(out) if ended.code == 0 else f"the next run: exit code {ended.code}: {ended.output}"
    if fault is None and (left := leftovers(out)):
        fault = f"left over: {left}"
    return state, fault


def at_every_call(case: CrashCase, folder: Path, every: int) -> Counter[str]:
    """Kill the command before every call, and in or after it."""
    out, found = folder / "work" / "out", Counter[str]()
    case.restore(out)
    calls = run(case.arguments(out), case.watched(out)).calls
    for action in (Action.KILL, Action.TEAR):
        for call in range(1, calls + 1, every):
            case.restore(out)
            ended = run(case.arguments(out), case.watched(out), action, call)
            _count(found, case, out, ended.code, f"{action.name} at call {call} of {calls}")
    return found


def at_random(case: CrashCase, folder: Path, times: int) -> Counter[str]:
    """Kill the process group of a real command line at random times after its imports."""
    out, found, dice = folder / "work" / "out", Counter[str](), random.Random(case.name)
    case.restore(out)
    longest = _real_run(case.arguments(out), None)[1]
    for _ in range(times):
        case.restore(out)
        seconds = dice.uniform(0, longest)
        code, _ = _real_run(case.arguments(out), seconds)
        _count(found, case, out, code, f"killed after {seconds:.4f} s")
    return found


def _real_run(arguments: list[str], kill_after: float | None) -> tuple[int, float]:
    clean = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    command = [sys.executable, "-c", STARTED, *arguments]
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


def _count(found: Counter[str], case: CrashCase, out: Path, code: int, when: str) -> None:
    state, fault = judged(case, out)
    if fault is None and code not in (0, KILLED):
        fault = f"exit code {code}"
    found.update({"cases": 1, "killed": int(code == KILLED), WRONG if fault else state: 1})
    if fault:
        print(f"{case.name}, {when}: {fault}", file=sys.stderr)


@contextmanager
def sabotaged(how: str | None) -> Iterator[None]:
    """Remove a safeguard."""
    patches: dict[str, Callable[..., object]] = {}
    if how == "in-place":
        patches = {"create": _created_in_place, "replace": _replaced_in_place, "put": _put_in_place}
    elif how:
        patches = _table_after_manifest()
    with ExitStack() as stack:
        for name, function in patches.items():
            owner = packer.publish.generation if name == "put_table" else FolderStore
            stack.enter_context(mock.patch.object(owner, name, function))
        yield


def _put_in_place(store: FolderStore, name: str, data: bytes) -> None:
    store.path(name).write_bytes(data)


def _created_in_place(store: FolderStore, name: str, data: bytes) -> bool:
    return not store.path(name).exists() and _replaced_in_place(store, name, data)


def _replaced_in_place(store: FolderStore, name: str, data: bytes, old: Version | None = None) -> bool:
    _put_in_place(store, name, data)
    return True


def _table_after_manifest() -> dict[str, Callable[..., object]]:
    """Return functions that write the table of shards only when the manifest is there."""
    waiting: list[Callable[[], object]] = []

    def later(*arguments: Any) -> None:
        waiting.append(partial(real_table, *arguments))

    def then(real: Callable[..., bool], store: FolderStore, name: str, *arguments: Any) -> bool:
        done = real(store, name, *arguments)
        while name == MANIFEST and waiting:
            waiting.pop()()
        return done

    real_table = packer.publish.generation.put_table
    wrapped: dict[str, Callable[..., object]] = {"put_table": later}
    for name in ("create", "replace"):
        real = getattr(FolderStore, name)
        wrapped[name] = lambda store, name, *rest, real=real: then(real, store, name, *rest)
    return wrapped


def main() -> None:
    options = case_parser(__doc__)
    options.add_argument("--random", type=int, default=300, help="kills at random times for each format")
    options.add_argument("--every", type=int, default=1, metavar="N", help="only every N-th call")
    options.add_argument("--sabotage", choices=("in-place", "manifest-first"))
    chosen = options.parse_args()
    interposed()
    drills = {"every call": partial(at_every_call, every=chosen.every)}
    drills["random times"] = partial(at_random, times=chosen.random // 5)
    print(line(("format", "command", "killed at", *COLUMNS), WIDTHS))
    wrong = 0
    with sabotaged(chosen.sabotage):
        for folder, case in chosen_cases(chosen):
            for when, drill in drills.items():
                found = drill(case, folder)
                wrong += found[WRONG]
                print(line((folder.name, case.name, when, *(found[name] for name in COLUMNS)), WIDTHS), flush=True)
    sys.exit(1 if wrong else 0)
