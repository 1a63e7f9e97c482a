"""Simulate power cuts: replay the recorded changes of a command, and lose a part of what was not synced.

    tools/run drills.powerloss [--states 1000] [--format npy]

Every change that a command makes to the disk is recorded. A state is a possible content of the disk after a power cut.
Of a file it has the synced bytes, and any blocks of 512 bytes of later writes, torn and in any order; of a folder the
synced names, and any of the later ones. This is harsher than common file systems, which keep more order. In every state
the pack must be complete, in the state before or after the command, and the next run must give the bytes of an
undisturbed one. Exits 1 if any of this fails.

--sabotage skips syncs of files or of folders, to show that the drill detects it.
"""

from __future__ import annotations

import os
import random
import shutil
import stat
import struct
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from tables import line

from drills.crash_cases import CrashCase, case_parser, chosen_cases
from drills.interpose import Action, Kind, interposed, run
from drills.kills import NEW, OLD, WRONG, judged

ENTRY = struct.Struct("<qIIII")
BLOCK = 512
COLUMNS = ("changes", "states", OLD, NEW, WRONG)
WIDTHS = (-6, -12, *[9] * len(COLUMNS))


@dataclass(frozen=True)
class Change:
    """One call that changed the disk."""

    kind: Kind
    path: tuple[str, ...]
    other: tuple[str, ...]
    offset: int
    data: bytes


@dataclass
class DiskFile:
    """The synced bytes, the bytes that processes see, and the writes since the last sync."""

    synced: bytes = b""
    now: bytes = b""
    writes: list[tuple[int, bytes]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def write(self, offset: int, data: bytes) -> None:
        self.now = self.now[:offset].ljust(offset, b"\0") + data + self.now[offset + len(data) :]
        self.writes.append((offset, data))
        self.sizes.append(len(self.now))

    def truncate(self, size: int) -> None:
        self.now = self.now[:size].ljust(size, b"\0")
        self.sizes.append(size)

    def sync(self, data: bytes) -> None:
        self.synced = self.now = data
        self.writes, self.sizes = [], []

    def write_remains(self, path: Path, dice: random.Random) -> None:
        """Write what a power cut leaves of the file."""
        found, likely = bytearray(self.synced), dice.choice((0.0, 0.5, 1.0))
        for offset, data in self.writes:
            for start in range(0, len(data), BLOCK):
                if dice.random() < likely:
                    block, at = data[start : start + BLOCK], offset + start
                    found.extend(bytes(max(0, at + len(block) - len(found))))
                    found[at : at + len(block)] = block
        size = dice.choice([len(self.synced), *self.sizes])
        path.write_bytes(bytes(found[:size]).ljust(size, b"\0"))


@dataclass
class DiskFolder:
    """The synced names, the names that processes see, and the changes since the last sync."""

    synced: dict[str, DiskFile | DiskFolder] = field(default_factory=dict)
    now: dict[str, DiskFile | DiskFolder] = field(default_factory=dict)
    changes: list[tuple[str, DiskFile | DiskFolder | None]] = field(default_factory=list)

    def set(self, name: str, node: DiskFile | DiskFolder | None) -> None:
        """Give a name to a file or folder, or remove the name with None."""
        _set_name(self.now, name, node)
        self.changes.append((name, node))

    def sync(self) -> None:
        self.synced, self.changes = dict(self.now), []

    def write_remains(self, path: Path, dice: random.Random) -> None:
        """Make what a power cut leaves of the folder."""
        path.mkdir()
        found, likely = dict(self.synced), dice.choice((0.0, 0.5, 1.0))
        for name, node in self.changes:
            if dice.random() < likely:
                _set_name(found, name, node)
        for name, kept in found.items():
            kept.write_remains(path / name, dice)


def _set_name(names: dict[str, DiskFile | DiskFolder], name: str, node: DiskFile | DiskFolder | None) -> None:
    if node is None:
        names.pop(name, None)
    else:
        names[name] = node


def on_disk(path: Path) -> DiskFile | DiskFolder:
    """Return a file or folder with everything synced."""
    if path.is_file():
        data = path.read_bytes()
        return DiskFile(data, data)
    names = {child.name: on_disk(child) for child in path.iterdir()} if path.is_dir() else {}
    return DiskFolder(names, dict(names))


def replay(root: DiskFolder, changes: Sequence[Change]) -> None:
    """Apply changes to the model of a disk."""
    for change in changes:
        *folders, name = change.path or ("",)
        folder = _folder(root, folders)
        node = folder.now.get(name)
        if change.kind in (Kind.CREATE, Kind.MKDIR):
            folder.set(name, DiskFile() if change.kind == Kind.CREATE else DiskFolder())
        elif change.kind in (Kind.UNLINK, Kind.RMDIR):
            folder.set(name, None)
        elif change.kind == Kind.RENAME:
            folder.set(name, None)
            _folder(root, change.other[:-1]).set(change.other[-1], node)
        elif change.kind == Kind.LINK:
            _folder(root, change.other[:-1]).set(change.other[-1], node)
        elif change.kind == Kind.SYNC_FOLDER:
            _folder(root, change.path).sync()
        elif not isinstance(node, DiskFile):
            raise SystemExit(f"{change}: there is no such file before it")
        elif change.kind == Kind.WRITE:
            node.write(change.offset, change.data)
        elif change.kind == Kind.TRUNCATE:
            node.truncate(change.offset)
        else:
            node.sync(change.data)


def _folder(root: DiskFolder, names: Sequence[str]) -> DiskFolder:
    for name in names:
        found = root.now[name]
        assert isinstance(found, DiskFolder)
        root = found
    return root


def recorded(case: CrashCase, work: Path) -> list[Change]:
    """Return the changes that an undisturbed run makes below `work`."""
    record = work.with_name("record")
    record.write_bytes(b"")
    ended = run(case.arguments(work / "out"), work, Action.RECORD, record=record)
    if ended.code:
        raise SystemExit(f"{case.name}: exit code {ended.code}: {ended.output}")
    data, at, changes = record.read_bytes(), 0, []
    while at < len(data):
        offset, kind, *sizes = ENTRY.unpack_from(data, at)
        at += ENTRY.size
        parts = []
        for size in sizes:
            parts.append(data[at : at + size])
            at += size
        path, other = (Path(os.fsdecode(part)).relative_to(work).parts if part else () for part in parts[:2])
        changes.append(Change(Kind(kind), path, other, offset, parts[2]))
    return changes


def drill(case: CrashCase, folder: Path, states: int) -> Counter[str]:
    """Make states of the disk, and judge each."""
    work, dice = folder / "work", random.Random(f"{folder.name} {case.name}")
    _restore(case, work)
    changes = recorded(case, work)
    found = Counter({"changes": len(changes), "states": states})
    for state in range(states):
        _restore(case, work)
        root = on_disk(work)
        assert isinstance(root, DiskFolder)
        done = dice.randint(dice.choice((0, len(changes) * 4 // 5)), len(changes))  # publishing comes last
        replay(root, changes[:done])
        shutil.rmtree(work)
        root.write_remains(work, dice)
        after, fault = judged(case, work / "out")
        found[WRONG if fault else after] += 1
        if fault:
            print(f"{case.name}, state {state}, after change {done} of {len(changes)}: {fault}", file=sys.stderr)
    return found


def _restore(case: CrashCase, work: Path) -> None:
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    case.restore(work / "out")


@contextmanager
def sabotaged(how: str | None) -> Iterator[None]:
    """Skip some syncs of the command's own process."""
    real = os.fsync

    def sync_some(file: int) -> None:
        if stat.S_ISDIR(os.fstat(file).st_mode) != (how == "folders"):
            real(file)

    with mock.patch.object(os, "fsync", sync_some if how else real):
        yield


def main() -> None:
    options = case_parser(__doc__)
    options.add_argument("--states", type=int, default=1000, help="states for each format; a fifth for each command")
    options.add_argument("--sabotage", choices=("files", "folders"))
    chosen = options.parse_args()
    interposed()
    print(line(("format", "command", *COLUMNS), WIDTHS))
    wrong = 0
    for folder, case in chosen_cases(chosen):
        with sabotaged(chosen.sabotage):
            found = drill(case, folder, chosen.states // 5)
        wrong += found[WRONG]
        print(line((folder.name, case.name, *(found[name] for name in COLUMNS)), WIDTHS), flush=True)
    sys.exit(1 if wrong else 0)
