"""Drill: the power fails at any moment. Recorded changes are replayed, and what was not synced is lost in part.

    PYTHONPATH=tools python -m drills.powerloss [--states 1000] [--format npy]

Every change that a command makes to the disk is recorded. A state is what a disk may hold if the power fails after some
of them: of a file what was synced, and of later writes any blocks of 512 bytes, torn and in any order; of a folder what
was synced, and of the later names any. This is harsher than the file systems in use, which keep more order. In every
state the pack must be whole, as before or as after, and the next run must end as an unbroken one does, byte for byte.
Exits 1 if any is not so.

--sabotage leaves syncs out, of files or of folders, to show that the drill finds it.
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

from drills.interposed import Action, Kind, interposed, run
from drills.kills import NEW, OLD, WRONG, judged
from drills.scenes import Scene, chosen, options

ENTRY = struct.Struct("<qIIII")
BLOCK = 512
COLUMNS = ("changes", "states", OLD, NEW, WRONG)


@dataclass(frozen=True)
class Change:
    """One call that changed the disk."""

    kind: Kind
    path: tuple[str, ...]
    other: tuple[str, ...]
    offset: int
    data: bytes


@dataclass
class File:
    """What is on the disk for sure, what processes see, and the writes since the last sync."""

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

    def left(self, path: Path, dice: random.Random) -> None:
        """Write what a power cut leaves."""
        found, likely = bytearray(self.synced), dice.choice((0.0, 0.5, 1.0))
        for offset, data in self.writes:
            for start in range(0, len(data), BLOCK):
                if dice.random() < likely:
                    block, place = data[start : start + BLOCK], offset + start
                    found.extend(bytes(max(0, place + len(block) - len(found))))
                    found[place : place + len(block)] = block
        size = dice.choice([len(self.synced), *self.sizes])
        path.write_bytes(bytes(found[:size]).ljust(size, b"\0"))


@dataclass
class Folder:
    """The names that are on the disk for sure, those that processes see, and the changes since the last sync."""

    synced: dict[str, File | Folder] = field(default_factory=dict)
    now: dict[str, File | Folder] = field(default_factory=dict)
    changes: list[tuple[str, File | Folder | None]] = field(default_factory=list)

    def put(self, name: str, node: File | Folder | None) -> None:
        """Have a name stand for something else, or, with None, for nothing."""
        _put(self.now, name, node)
        self.changes.append((name, node))

    def sync(self) -> None:
        self.synced, self.changes = dict(self.now), []

    def left(self, path: Path, dice: random.Random) -> None:
        """Make what a power cut leaves."""
        path.mkdir()
        found, likely = dict(self.synced), dice.choice((0.0, 0.5, 1.0))
        for name, node in self.changes:
            if dice.random() < likely:
                _put(found, name, node)
        for name, kept in found.items():
            kept.left(path / name, dice)


def _put(names: dict[str, File | Folder], name: str, node: File | Folder | None) -> None:
    if node is None:
        names.pop(name, None)
    else:
        names[name] = node


def on_disk(path: Path) -> File | Folder:
    """A file or folder all of which is synced."""
    if path.is_file():
        data = path.read_bytes()
        return File(data, data)
    names = {one.name: on_disk(one) for one in path.iterdir()} if path.is_dir() else {}
    return Folder(names, dict(names))


def replayed(root: Folder, changes: Sequence[Change]) -> None:
    """Do the changes again, to the model of a disk."""
    for change in changes:
        *folders, name = change.path or ("",)
        folder = _folder(root, folders)
        node = folder.now.get(name)
        if change.kind in (Kind.CREATE, Kind.MKDIR):
            folder.put(name, File() if change.kind == Kind.CREATE else Folder())
        elif change.kind in (Kind.UNLINK, Kind.RMDIR):
            folder.put(name, None)
        elif change.kind == Kind.RENAME:
            folder.put(name, None)
            _folder(root, change.other[:-1]).put(change.other[-1], node)
        elif change.kind == Kind.SYNC_FOLDER:
            _folder(root, change.path).sync()
        elif not isinstance(node, File):
            raise SystemExit(f"{change}: is not of a file that was made before")
        elif change.kind == Kind.WRITE:
            node.write(change.offset, change.data)
        elif change.kind == Kind.TRUNCATE:
            node.truncate(change.offset)
        else:
            node.sync(change.data)


def _folder(root: Folder, names: Sequence[str]) -> Folder:
    for name in names:
        found = root.now[name]
        assert isinstance(found, Folder)
        root = found
    return root


def recorded(scene: Scene, work: Path) -> list[Change]:
    """The changes that an unbroken run makes below `work`."""
    record = work.with_name("record")
    record.write_bytes(b"")
    ended = run(scene.arguments(work / "out"), work, Action.RECORD, record=record)
    if ended.code:
        raise SystemExit(f"{scene.name}: exit code {ended.code}: {ended.words}")
    data, place, changes = record.read_bytes(), 0, []
    while place < len(data):
        offset, kind, *sizes = ENTRY.unpack_from(data, place)
        place += ENTRY.size
        parts = []
        for size in sizes:
            parts.append(data[place : place + size])
            place += size
        path, other = (Path(os.fsdecode(part)).relative_to(work).parts if part else () for part in parts[:2])
        changes.append(Change(Kind(kind), path, other, offset, parts[2]))
    return changes


def drill(scene: Scene, folder: Path, states: int) -> Counter[str]:
    """Bring about states of the disk, and judge each."""
    work, dice = folder / "work", random.Random(f"{folder.name} {scene.name}")
    _set(scene, work)
    changes = recorded(scene, work)
    found = Counter({"changes": len(changes), "states": states})
    for state in range(states):
        _set(scene, work)
        root = on_disk(work)
        assert isinstance(root, Folder)
        done = dice.randint(dice.choice((0, len(changes) * 4 // 5)), len(changes))  # publishing comes last
        replayed(root, changes[:done])
        shutil.rmtree(work)
        root.left(work, dice)
        after, fault = judged(scene, work / "out")
        found[WRONG if fault else after] += 1
        if fault:
            print(f"{scene.name}, state {state}, after change {done} of {len(changes)}: {fault}", file=sys.stderr)
    return found


def _set(scene: Scene, work: Path) -> None:
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    scene.set(work / "out")


@contextmanager
def sabotaged(how: str | None) -> Iterator[None]:
    """Without some of the syncs of the command's own process."""
    real = os.fsync

    def some(file: int) -> None:
        if stat.S_ISDIR(os.fstat(file).st_mode) != (how == "folders"):
            real(file)

    with mock.patch.object(os, "fsync", some if how else real):
        yield


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--states", type=int, default=1000, help="states of each format; a fifth for each command")
    parser.add_argument("--sabotage", choices=("files", "folders"))
    told = parser.parse_args()
    interposed()
    print(f"{'format':<7}{'command':<13}", *(f"{column:>9}" for column in COLUMNS))
    wrong = 0
    for folder, scene in chosen(told):
        with sabotaged(told.sabotage):
            found = drill(scene, folder, told.states // 5)
        wrong += found[WRONG]
        print(f"{folder.name:<7}{scene.name:<13}", *(f"{found[one]:>9}" for one in COLUMNS), flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
