"""Let the disk be full, fail, or write less than asked, at every call; and use disks that are really too small.

    tools/run drills.fulldisk [--format npy]

`full`: from some call on there is no space. `I/O error`: one call fails. `short`: one write writes half. `small disk`:
a tmpfs of every size from nothing to enough, which only root can mount. A command that fails must exit 1, name the
reason, and leave the pack unchanged and no temporary file, except files that it could not delete. The next run, on a
working disk, must give the bytes of an undisturbed one. Exits 1 if any of this fails.

`published` counts commands that failed after the rename that publishes: the pack is complete, and they name the step
that failed after it.
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

from tables import line

from drills.crash_cases import CrashCase, case_parser, chosen_cases, leftovers
from drills.interpose import Action, Ended, Kind, interposed, run
from drills.powerloss import recorded

SPACE = {Kind.CREATE, Kind.WRITE, Kind.TRUNCATE, Kind.MKDIR}
DELETING = {Kind.UNLINK, Kind.RMDIR}
FAULTS = {
    "full": (Action.FAIL_FROM, errno.ENOSPC, SPACE),
    "I/O error": (Action.FAIL, errno.EIO, set(Kind)),
    "short": (Action.SHORT, 0, {Kind.WRITE}),
}
DONE, FAILED, PUBLISHED, WRONG = "exit 0", "exit 1", "published", "WRONG"
COLUMNS = ("cases", DONE, FAILED, PUBLISHED, WRONG)
WIDTHS = (-6, -12, -10, *[9] * len(COLUMNS))


def judged(case: CrashCase, out: Path, ended: Ended, error: int) -> tuple[str, str | None]:
    """Return the end of a command that met a fault, and what is wrong with it."""
    if ended.code == 0:
        return DONE, case.difference(out)
    if ended.code != 1 or "Traceback" in ended.output:
        return FAILED, f"exit code {ended.code}: {ended.output}"
    reasons = [error] if error else [errno.ENOSPC, errno.EIO]  # a library takes a short write as either
    if not any(os.strerror(reason).lower() in ended.output.lower() for reason in reasons):
        return FAILED, f"the reason is missing: {ended.output}"
    if ended.kind not in DELETING and (left := leftovers(out)):
        return FAILED, f"left over: {left}"
    return PUBLISHED if case.is_after(out) and not case.is_before(out) else FAILED, case.fault(out)


def next_run(case: CrashCase, out: Path) -> str | None:
    """Return what is wrong with the next run, on a working disk."""
    ended = run(case.arguments(out))
    if ended.code:
        return f"the next run: exit code {ended.code}: {ended.output}"
    left = leftovers(out)
    return f"left over: {left}" if left else case.difference(out)


def drill(case: CrashCase, folder: Path, fault: str, every: int) -> Counter[str]:
    """Cause a fault at every call that can have it."""
    work, found = folder / "work", Counter[str]()
    out, (action, error, kinds) = work / "out", FAULTS[fault]
    work.mkdir(exist_ok=True)
    case.restore(out)
    calls = [number for number, change in enumerate(recorded(case, work), 1) if change.kind in kinds]
    for call in calls[::every]:
        case.restore(out)
        ended = run(case.arguments(out), work, action, call, error)
        state, wrong = judged(case, out, ended, error)
        wrong = wrong or next_run(case, out)
        found.update({"cases": 1, WRONG if wrong else state: 1})
        if wrong:
            print(f"{case.name}, {fault} at call {call} ({ended.kind!r}): {wrong}", file=sys.stderr)
    return found


def small_disks(case: CrashCase, folder: Path, step: int) -> Counter[str]:
    """Do the same on disks that are too small, with more and more bytes, until it is enough."""
    work, found = folder / "disk", Counter[str]()
    work.mkdir(exist_ok=True)
    size = step
    while not found[DONE]:
        with mounted(work, size):
            out = work / "out"
            try:
                case.restore(out)
            except (OSError, shutil.Error):
                size += step
                continue
            ended = run(case.arguments(out))
            state, wrong = judged(case, out, ended, errno.ENOSPC)
            if wrong and "needs about" in ended.output:
                wrong = case.fault(out)  # the plan has found out before the build
        found.update({"cases": 1, WRONG if wrong else state: 1})
        if wrong:
            print(f"{case.name}, on a disk of {size} bytes: {wrong}", file=sys.stderr)
        size += step
    return found


@contextmanager
def mounted(folder: Path, size: int) -> Iterator[None]:
    """Mount a file system in memory that holds `size` bytes."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "drill", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def main() -> None:
    options = case_parser(__doc__)
    options.add_argument("--every", type=int, default=1, metavar="N", help="only every N-th call")
    options.add_argument("--step", type=int, default=8192, metavar="BYTES", help="growth of the small disks")
    chosen = options.parse_args()
    interposed()
    print(line(("format", "command", "fault", *COLUMNS), WIDTHS))
    wrong = 0
    for folder, case in chosen_cases(chosen):
        rows = {fault: drill(case, folder, fault, chosen.every) for fault in FAULTS}
        if os.geteuid() == 0 and case.command == "build":
            rows["small disk"] = small_disks(case, folder, chosen.step)
        for fault, found in rows.items():
            wrong += found[WRONG]
            print(line((folder.name, case.name, fault, *(found[name] for name in COLUMNS)), WIDTHS), flush=True)
    sys.exit(1 if wrong else 0)
