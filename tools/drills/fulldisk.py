"""Drill: the disk is full, fails, or writes less than asked for, at every call; and disks that really are too small.

    PYTHONPATH=tools python -m drills.fulldisk [--format npy]

`full`: from some call on nothing more fits. `I/O error`: one call fails. `short`: one write writes half. `small disk`:
a tmpfs of every size from nothing to enough, which only root can mount. A command that fails must exit 1 and name the
reason in words, leave the pack as before and nothing temporary (but what it was not let delete); and the next run, with
the disk in order, must end as an unbroken one does, byte for byte. Exits 1 if any is not so.

`published` counts commands that failed after the rename that publishes: all is there, and they say what they could not
do after that.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from drills.interposed import Action, Ended, Kind, interposed, run
from drills.powerloss import recorded
from drills.scenes import Scene, chosen, leftovers, options

SPACE = {Kind.CREATE, Kind.WRITE, Kind.TRUNCATE, Kind.MKDIR}
DELETING = {Kind.UNLINK, Kind.RMDIR}
FAULTS = {
    "full": (Action.FAIL_FROM, errno.ENOSPC, SPACE),
    "I/O error": (Action.FAIL, errno.EIO, set(Kind)),
    "short": (Action.SHORT, 0, {Kind.WRITE}),
}
DONE, FAILED, PUBLISHED, WRONG = "exit 0", "exit 1", "published", "WRONG"
COLUMNS = ("cases", DONE, FAILED, PUBLISHED, WRONG)


def judged(scene: Scene, out: Path, ended: Ended, error: int) -> tuple[str, str | None]:
    """What became of a command that met a fault, and what is wrong with that."""
    if ended.code == 0:
        return DONE, scene.difference(out)
    if ended.code != 1 or "Traceback" in ended.words:
        return FAILED, f"exit code {ended.code}: {ended.words}"
    reasons = [error] if error else [errno.ENOSPC, errno.EIO]  # as the library takes a short write that is its own
    if not any(os.strerror(one).lower() in ended.words.lower() for one in reasons):
        return FAILED, f"the reason is not told: {ended.words}"
    if ended.kind not in DELETING and (left := leftovers(out)):
        return FAILED, f"left behind: {left}"
    return PUBLISHED if scene.is_after(out) and not scene.is_before(out) else FAILED, scene.fault(out)


def mended(scene: Scene, out: Path) -> str | None:
    """What is wrong with the next run, once the disk is in order."""
    ended = run(scene.arguments(out))
    if ended.code:
        return f"the next run: exit code {ended.code}: {ended.words}"
    left = leftovers(out)
    return f"left behind: {left}" if left else scene.difference(out)


def drill(scene: Scene, folder: Path, fault: str, every: int) -> Counter[str]:
    """A fault at every call that can have it."""
    work, found = folder / "work", Counter[str]()
    out, (action, error, kinds) = work / "out", FAULTS[fault]
    work.mkdir(exist_ok=True)
    scene.set(out)
    calls = [number for number, change in enumerate(recorded(scene, work), 1) if change.kind in kinds]
    for call in calls[::every]:
        scene.set(out)
        ended = run(scene.arguments(out), work, action, call, error)
        state, wrong = judged(scene, out, ended, error)
        wrong = wrong or mended(scene, out)
        found.update({"cases": 1, WRONG if wrong else state: 1})
        if wrong:
            print(f"{scene.name}, {fault} at call {call} ({ended.kind!r}): {wrong}", file=sys.stderr)
    return found


def small_disks(scene: Scene, folder: Path, step: int) -> Counter[str]:
    """The same on disks that hold too little, of more and more bytes, until it is enough."""
    work, found = folder / "disk", Counter[str]()
    work.mkdir(exist_ok=True)
    size = step
    while not found[DONE]:
        with mounted(work, size):
            out = work / "out"
            try:
                scene.set(out)
            except (OSError, shutil.Error):
                size += step
                continue
            ended = run(scene.arguments(out))
            state, wrong = judged(scene, out, ended, errno.ENOSPC)
            if wrong and "needs about" in ended.words:
                wrong = scene.fault(out)  # the plan says beforehand how much it needs
        found.update({"cases": 1, WRONG if wrong else state: 1})
        if wrong:
            print(f"{scene.name}, on a disk of {size} bytes: {wrong}", file=sys.stderr)
        size += step
    return found


@contextmanager
def mounted(folder: Path, size: int) -> Iterator[None]:
    """A file system in memory that holds `size` bytes."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "drill", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--every", type=int, default=1, help="only every n-th call")
    parser.add_argument("--step", type=int, default=8192, help="bytes by which the small disks grow")
    told = parser.parse_args()
    interposed()
    print(f"{'format':<7}{'command':<13}{'fault':<11}", *(f"{column:>9}" for column in COLUMNS))
    wrong = 0
    for folder, scene in chosen(told):
        rows = {fault: drill(scene, folder, fault, told.every) for fault in FAULTS}
        if os.geteuid() == 0 and scene.command == "build":
            rows["small disk"] = small_disks(scene, folder, told.step)
        for fault, found in rows.items():
            wrong += found[WRONG]
            counts = (f"{found[one]:>9}" for one in COLUMNS)
            print(f"{folder.name:<7}{scene.name:<13}{fault:<11}", *counts, flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
