"""Kill builds into a bucket, pushes and pulls at calls of the store that are spread over their run, and run them again.

    tools/run drills.store_kills [--kills 40] [--case build]

The store is MiniStack, an S3 server, on loopback. SIGKILL comes before or after a call of the store, or in the middle
of a download. Then a reader must find the old generation or the new one, whole, and the same command must end with the
pack that was expected. Exits 1 if any of this fails. Commands run in forked processes, which is fast.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from program import parser
from scenes.tiny import add_pair, age, make_tiny
from tables import line

import packer.workers.run
from drills.published import published
from drills.s3_server import BUCKET, started
from packer import build_pack, build_part, commit_pack, plan_pack
from packer.packs.push import pull_pack, push_pack
from packer.publish.store_probe import PREFIX
from packer.workers.in_process import InProcess
from readers import open_dataset
from readers.contract.manifest import Manifest
from readers.stores.object_store import ObjectStore

BEFORE, AFTER = "before", "after"
ENDED = "it ended before it was killed"
CALLS = ("list", "read", "fetch", "put", "delete", "create", "replace")
KILLED, FAILED = -signal.SIGKILL, 1
ROWS = 6
WIDTHS = (-6, -24, *[9] * 5)


@dataclass(frozen=True)
class Kill:
    """Kill the process before or after a call of the store, by its number."""

    call: int
    when: str = BEFORE


def in_child(run: Callable[[], object]) -> int:
    """Run a function in a forked process; return its exit code, negative for a signal. This one has no obstore yet."""
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        code = FAILED
        try:
            run()
            code = 0
        except BaseException as error:  # noqa: BLE001 - it must not run on as a second drill
            print(f"  {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def end() -> None:
    """Kill this process."""
    os.kill(os.getpid(), signal.SIGKILL)


def then_end(write: Callable[[memoryview], object], piece: memoryview) -> None:
    """Take the first piece of a download, and no more."""
    write(piece)
    end()


def counted(kill: Kill | None, count: Callable[[int], object] = lambda calls: None) -> None:
    """Have this process kill itself at a call of the store. The calls of a probe do not count."""
    calls = itertools.count(1)

    def wrap(name: str) -> None:
        real: Callable[..., Any] = getattr(ObjectStore, name)

        def call(store: ObjectStore, what: Any, *rest: Any) -> Any:
            if name != "delete" and what.startswith(PREFIX):
                return real(store, what, *rest)
            number = next(calls)
            count(number)
            if kill == Kill(number):
                end()
            if name == "fetch" and kill == Kill(number, AFTER):
                rest = (partial(then_end, rest[0]),)
            try:
                return real(store, what, *rest)
            finally:  # also after an error, such as a missing object
                if kill == Kill(number, AFTER):
                    end()

        setattr(ObjectStore, name, call)

    for name in CALLS:
        wrap(name)


@dataclass
class World:
    """Two nights of a raw folder, and the packs of them that local builds make: the second one follows the first."""

    work: Path

    def __post_init__(self) -> None:
        self.old_raw, self.new_raw, self.local = self.work / "old-raw", self.work / "new-raw", self.work / "local"
        make_tiny(self.old_raw, {"train": ROWS, "val": 2})
        shutil.copytree(self.old_raw, self.new_raw)
        add_pair(self.new_raw, "train", "street_000", 77)
        add_pair(self.new_raw, "train", "street_new", 78)
        age(self.new_raw, 1_000_000)
        build(self.old_raw, self.local)
        self.old = self.work / "old"
        shutil.copytree(self.local, self.old)
        build(self.new_raw, self.local)
        self.rows = {digest_of(self.old): "old", digest_of(self.local): "new"}
        self._folders = itertools.count()

    def folder(self) -> Path:
        return self.work / f"folder-{next(self._folders)}"

    def url(self) -> str:
        return f"s3://{BUCKET}/{self.folder().name}"


def build(raw: Path, out: Path | str) -> None:
    build_pack(raw, str(out), shard_size="12KB", workers=2)


def digest_of(root: Path | str, cache: Path | None = None) -> str:
    """Return a digest of all rows, as a reader sees them."""
    digest = hashlib.sha256()
    options: dict[str, Any] = {} if cache is None else {"cache": cache}
    for split in ("train", "val"):
        data = open_dataset(root, split=split, **options)
        for row in range(len(data)):
            for part in data[row]:
                digest.update(part.numpy().tobytes())
    return digest.hexdigest()


class Case:
    """A command from a state to another one. `prepare` makes the state before, and returns where it is."""

    name = ""

    def __init__(self, world: World) -> None:
        self.world = world

    def prepare(self) -> Path | str:
        """Put the old generation into the bucket."""
        url = self.world.url()
        must(lambda: push_pack(self.world.old, url))
        return url

    def command(self, at: Path | str) -> None: ...

    def finish(self, at: Path | str) -> None:
        """Do what is left after the command."""

    def reader(self, at: Path | str) -> str:
        """Return which generation a reader finds."""
        with tempfile.TemporaryDirectory(dir=self.world.work) as cache:
            return self.world.rows.get(digest_of(at, None if isinstance(at, Path) else Path(cache)), "WRONG")

    def files(self, at: Path | str) -> dict[str, bytes]:
        """Return the published files."""
        if isinstance(at, Path):
            return published(at)
        with tempfile.TemporaryDirectory(dir=self.world.work) as copy:
            pull_pack(at, copy)
            return published(Path(copy))


class Build(Case):
    name = "build"

    def prepare(self) -> str:
        url = self.world.url()
        must(lambda: build(self.world.old_raw, url))
        return url

    def command(self, at: Path | str) -> None:
        build(self.world.new_raw, at)


class Push(Case):
    name = "push"

    def command(self, at: Path | str) -> None:
        push_pack(self.world.local, str(at))


class Pull(Case):
    name = "pull"

    def prepare(self) -> Path:
        self.url = str(super().prepare())
        must(lambda: push_pack(self.world.local, self.url))
        folder = self.world.folder()
        shutil.copytree(self.world.old, folder)
        return folder

    def command(self, at: Path | str) -> None:
        pull_pack(self.url, at)


class Part(Case):
    """A part of a plan by hand. What a reader finds is always old, because it publishes nothing."""

    name = "part"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.plan = world.folder()
        must(lambda: plan_pack(world.new_raw, self.plan, shard_size="12KB"))

    def command(self, at: Path | str) -> None:
        build_part(self.plan, "1/1", at, workers=2)

    def finish(self, at: Path | str) -> None:
        commit_pack(self.plan, at)


class Commit(Part):
    name = "commit"

    def prepare(self) -> Path | str:
        url = super().prepare()
        must(lambda: build_part(self.plan, "1/1", url, workers=2))
        return url

    def command(self, at: Path | str) -> None:
        commit_pack(self.plan, at)


CASES: dict[str, type[Case]] = {case.name: case for case in (Build, Part, Commit, Push, Pull)}


def must(run: Callable[[], object]) -> None:
    if in_child(run) != 0:
        raise SystemExit("what a case begins with failed")


def calls_of(case: Case) -> int:
    """Return the calls of a command that is not killed."""
    at, path = case.prepare(), case.world.folder()

    def run() -> None:
        counted(None, lambda number: path.write_text(str(number)))
        case.command(at)

    must(run)
    return int(path.read_text())


def points(calls: int, kills: int) -> Iterator[Kill]:
    """Yield so many points that are spread over all calls: before and after each, at most."""
    every = [Kill(call, when) for call in range(1, calls + 1) for when in (BEFORE, AFTER)]
    step = max(1.0, len(every) / kills)
    yield from (every[int(number * step)] for number in range(min(kills, len(every))))


def struck(case: Case, kill: Kill) -> tuple[str, str | None]:
    """Kill the command at a point, and run it again. Return what a reader found after the kill, and what is wrong."""
    at, found = case.prepare(), case.world.folder()

    def killed() -> None:
        counted(kill)
        case.command(at)

    def seen() -> None:
        found.write_text(case.reader(at))

    def again() -> None:
        case.command(at)
        case.finish(at)
        if case.files(at) != published(case.world.local):
            raise ValueError("other files than those of a local build")
        if case.reader(at) != "new":
            raise ValueError("a reader finds other rows")

    code = in_child(killed)
    if code == 0:
        return ENDED, None  # threads make the calls, so their number may differ by some
    if code != KILLED:
        return "", f"it was not killed, exit code {code}"
    if in_child(seen) != 0:
        return "", "a reader finds no pack"
    state = found.read_text()
    if state == "WRONG":
        return state, "a reader finds other rows"
    return state, None if in_child(again) == 0 else "the next run"


def drill(names: Sequence[str], kills: int, work: Path) -> list[str]:
    """Kill each command so many times; return what went wrong."""
    wrong: list[str] = []
    with started(work), in_process():
        world = World(work)
        print(line(("case", "generation before, after", "calls", "kills", "old", "new", "WRONG"), WIDTHS))
        for name in names:
            case = CASES[name](world)
            calls, found = calls_of(case), Counter[str]()
            for kill in points(calls, kills):
                state, fault = struck(case, kill)
                found.update({"kills": int(state != ENDED), "WRONG" if fault else state: 1})
                if fault:
                    wrong.append(f"{name}, killed {kill.when} call {kill.call} of {calls}: {fault}")
                    print(wrong[-1], file=sys.stderr, flush=True)
            numbers = f"{Manifest.load(world.old).generation}, {Manifest.load(world.local).generation}"
            columns = (found[key] for key in ("kills", "old", "new", "WRONG"))
            print(line((name, numbers, calls, *columns), WIDTHS), flush=True)
    return wrong


@contextmanager
def in_process() -> Iterator[None]:
    """Build without worker processes."""
    before, packer.workers.run.POOL = packer.workers.run.POOL, InProcess
    yield
    packer.workers.run.POOL = before


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--kills", type=int, default=40, help="of each command")
    options.add_argument("--case", action="append", choices=CASES, help="only this one; may be repeated")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as work:
        sys.exit(1 if drill(chosen.case or list(CASES), chosen.kills, Path(work)) else 0)
