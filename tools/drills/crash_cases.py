"""The commands that drills break: for each a pack before it, and the pack after it has run undisturbed."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from program import parser
from scenes.noise import write_noise
from scenes.outlines import COCO, OPTIONS, Outlines, triangle, write_noisy, write_outlines

from drills.interpose import run
from drills.sources import BUILD_ROWS, FOLDER, OUTLINED, PACK, PARTS, REPAIR_ROWS, SOURCES, WITH_TMPDIR
from packer.packs.generations import list_generations, receipt_paths
from packer.packs.staged_copies import copy_folder
from packer.packs.verify import verify
from packer.publish.history import HISTORY
from packer.publish.target import REMARKS, STAMPS
from readers.contract.errors import NoPackError, ReadError
from readers.contract.manifest import GENERATIONS, MANIFEST, SHARDS, STORAGES, Manifest
from readers.contract.receipt import SUFFIX


@dataclass(frozen=True)
class CrashCase:
    """A command, the pack before and the pack after it. For `stage`, `raw` is the pack that is staged, and the others
    are folders with its copy."""

    name: str
    command: str
    options: tuple[str, ...]
    raw: Path | None
    before: Path
    after: Path
    has_tmpdir: bool = False
    """True if the command has a folder of its own for temporary files, next to the pack, which is watched, too."""

    def arguments(self, out: Path) -> list[str]:
        """Return the command line for the pack `out`."""
        first = [WITH_TMPDIR, str(out.with_name("tmp"))] if self.has_tmpdir else []
        if self.command in ("build", BUILD_ROWS, "stage"):
            return [*first, self.command, *self.options, str(self.raw), str(out)]
        return [*first, self.command, str(out), *self.options, *([] if self.raw is None else [str(self.raw)])]

    def watched(self, out: Path) -> Path:
        """Return the folder in which every change by the command counts."""
        return out.parent if self.has_tmpdir else out

    def restore(self, out: Path) -> None:
        """Make `out` equal to the pack before the command."""
        if self.has_tmpdir:
            shutil.rmtree(out.with_name("tmp"), ignore_errors=True)
            out.with_name("tmp").mkdir(parents=True)
        copy(self.before, out)

    def pack(self, out: Path) -> Path:
        """Return the pack that the command changes."""
        return copy_folder(self.raw, out) if self.command == "stage" and self.raw else out

    def fault(self, out: Path) -> str | None:
        """Return what is wrong with the pack after a broken command: a third state, or damage."""
        pack = self.pack(out)
        try:
            damage = [*map(str, verify(pack, 1, lambda _: None)), *_incomplete(pack)]
        except NoPackError:
            damage = []
        except ReadError as error:
            return str(error)
        if not self.is_before(out) and not self.is_after(out):
            return f"{pack / MANIFEST} is neither as before nor as after"
        known = _damaged_shard(self.pack(self.before))  # repair deletes its receipt before it builds the shard again
        damage = [item for item in damage if known is None or known not in item]
        return f"damaged: {damage}" if damage else None

    def is_before(self, out: Path) -> bool:
        """Check if the current generation is the one before the command."""
        return _current(self.pack(out)) == _current(self.pack(self.before))

    def is_after(self, out: Path) -> bool:
        """Check if the current generation is the one that the command makes."""
        return _current(self.pack(out)) == _current(self.pack(self.after))

    def difference(self, out: Path) -> str | None:
        """Return the files in which a pack differs from the result of an undisturbed command."""
        left, right = content(self.pack(out)), content(self.pack(self.after))
        names = sorted(name for name in left.keys() | right.keys() if left.get(name) != right.get(name))
        return f"differs from an undisturbed run in {', '.join(names)}" if names else None


def copy(source: Path, target: Path) -> None:
    """Replace `target` by a copy of `source`, which may not exist."""
    shutil.rmtree(target, ignore_errors=True)
    if source.exists():
        shutil.copytree(source, target)


def content(out: Path) -> dict[str, bytes]:
    """Everything that counts in a pack: what hints at the time or the number of a generation does not."""
    found = {}
    for path in sorted(out.rglob("*")):
        name = str(path.relative_to(out))
        if not path.is_file() or name.startswith((STAMPS, REMARKS)) or name in (".lock", HISTORY):
            continue
        found[name] = path.read_bytes().replace(str(out).encode(), b"OUT")  # packer.toml contains it
        if path.suffix == ".json" and path.parent in (out, out / GENERATIONS):
            with suppress(ValueError):  # a torn file counts as different
                manifest = {**json.loads(found[name]), "created": "", "generation": 0, "checksum": ""}
                del found[name]
                key = name if path.parent == out else f"{GENERATIONS}/{manifest['table']}.json"
                found[key] = json.dumps(manifest).encode()
    return found


def leftovers(out: Path) -> list[str]:
    """Return the temporary files."""
    return [str(path) for path in out.rglob(".partial-*")]


def case_parser(doc: str | None) -> ArgumentParser:
    """Return a parser of the options that all drills of commands share."""
    options = parser(doc)
    options.add_argument("--format", choices=STORAGES, help="only this format")
    options.add_argument("--source", choices=SOURCES, default=FOLDER, help="what builds read")
    options.add_argument("--case", help="only this command, such as rollback")
    return options


def chosen_cases(chosen: Namespace) -> Iterator[tuple[Path, CrashCase]]:
    """Yield the cases of each format, with a folder to work in that has the name of the format."""
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_CACHE_HOME"] = f"{name}/cache"
        os.umask(0o077)  # folders of staged copies must be closed to other users
        for storage in [chosen.format] if chosen.format else STORAGES:
            folder = Path(name) / storage
            folder.mkdir()
            cases = _cases(folder, storage)
            if chosen.source != FOLDER:
                made = _outlined_cases if chosen.source in OUTLINED else _source_cases
                cases = made(folder, storage, chosen.source)
            yield from ((folder, case) for case in cases if chosen.case in (None, case.name))
            shutil.rmtree(folder)


def _cases(folder: Path, storage: str) -> Iterator[CrashCase]:
    """Yield a first build, the next build, and all other commands that change a pack."""
    raw = folder / "raw"
    options = ("--quiet", "--format", storage, "--classes", "3", "--shard-size", "8KB", "--workers", "2")
    write_raw(raw, range(24))
    nothing, first, second = folder / "nothing", folder / "first", folder / "second"
    yield _case("first build", "build", options, raw, nothing, first)
    plan = folder / "plan"
    _must_run(["plan", *options, str(raw), str(plan)])
    yield _case("parts, commit", PARTS, (str(plan),), None, nothing, folder / "committed")
    write_raw(raw, range(20, 28), seed=1)
    yield _case("next build", "build", options, raw, first, second)
    yield _case("rollback", "rollback", ("1",), None, second, folder / "back")
    yield _case("gc", "gc", ("--keep", "1", "--grace", "0s"), None, second, folder / "clean")
    broken = folder / "broken"
    copy(second, broken)
    _cut_short(broken)
    yield _case("repair", "repair", ("--quiet",), raw, broken, folder / "repaired")
    yield from _stage_cases(folder, first, second)


def _source_cases(folder: Path, storage: str, source: str) -> Iterator[CrashCase]:
    """Yield a first build, the next build and a repair, from a pack or from functions."""
    raw, pack = folder / "raw", folder / "source"
    nothing, first, second, broken = (folder / name for name in ("nothing", "first", "second", "broken"))
    options = {"format": storage, "shard_size": "8KB", "workers": 2}
    build: tuple[str, tuple[str, ...], Path] = (BUILD_ROWS, (json.dumps({**options, "classes": 3}),), raw)
    repair: tuple[str, tuple[str, ...], Path | None] = (REPAIR_ROWS, (), raw)
    if source == PACK:
        build = ("build", ("--quiet", "--format", storage, "--shard-size", "8KB", "--workers", "2", "--from"), pack)
        repair = ("repair", ("--quiet",), None)
    for name, numbers, seed, before, after in (
        ("first build", range(24), 0, nothing, first),
        ("next build", range(20, 28), 1, first, second),
    ):
        write_raw(raw, numbers, seed)
        if source == PACK:
            _must_build(raw, pack)
        yield _case(name, *build, before, after)
    copy(second, broken)
    _cut_short(broken)
    yield _case("repair", *repair, broken, folder / "repaired")


def _outlined_cases(folder: Path, storage: str, kind: str) -> Iterator[CrashCase]:
    """Yield a first build, the next build and a repair, of pictures with annotations in files of one or of many."""
    raw = folder / "raw"
    nothing, first, second, broken = (folder / name for name in ("nothing", "first", "second", "broken"))
    options = ("--quiet", "--format", storage, "--shard-size", "8KB", "--workers", "2", *OPTIONS[kind])
    outlines, has_tmpdir = Outlines(), kind == COCO
    for name, numbers, seed, before, after in (
        ("first build", range(12), 0, nothing, first),
        ("next build", range(10, 14), 1, first, second),
    ):
        for number in numbers:
            write_noisy(raw, f"{number:03}", (seed, number))
            outlines.pictures[f"{number:03}"] = [triangle((seed, number, which)) for which in range(number % 4)]
        write_outlines(raw, kind, outlines)
        yield _case(name, "build", options, raw, before, after, has_tmpdir)
    copy(second, broken)
    _cut_short(broken)
    yield _case("repair", "repair", ("--quiet",), raw, broken, folder / "repaired", has_tmpdir)


def _must_build(raw: Path, pack: Path) -> None:
    options = ("--quiet", "--classes", "3", "--shard-size", "8KB", "--workers", "2")
    _must_run(["build", *options, str(raw), str(pack)])


def _must_run(command: list[str]) -> None:
    ended = run(command)
    if ended.code:
        raise SystemExit(f"{' '.join(command)}: exit code {ended.code}: {ended.output}")


def _cut_short(out: Path) -> None:
    """Cut the last byte of a file of the first shard."""
    stem = next(iter(receipt_paths(out, Manifest.load(out)))).name.removesuffix(SUFFIX)
    file = next(path for path in (out / SHARDS).glob(f"{stem}*") if not path.name.endswith(SUFFIX))
    file.write_bytes(file.read_bytes()[:-1])


def _stage_cases(folder: Path, first: Path, second: Path) -> Iterator[CrashCase]:
    """Yield the first copy of a pack, and the copy of its next generation."""
    source, local, options = folder / "source", folder / "local", ("--quiet", "--workers", "2")
    local.mkdir()
    copy(first, source)
    yield _case("first copy", "stage", options, source, local, folder / "staged")
    copy(second, source)
    yield _case("next copy", "stage", options, source, folder / "staged", folder / "again")


def write_raw(raw: Path, numbers: range, seed: int = 0) -> None:
    """Write pairs of tiny pictures. The same seed gives the same pixels."""
    for number in numbers:
        write_noise(raw, f"{number:03}", (16, 16), 3, (seed, number))


def _case(
    name: str,
    command: str,
    options: tuple[str, ...],
    raw: Path | None,
    before: Path,
    after: Path,
    has_tmpdir: bool = False,
) -> CrashCase:
    case = CrashCase(name, command, options, raw, before, after, has_tmpdir)
    case.restore(after)
    ended = run(case.arguments(after))
    if ended.code:
        raise SystemExit(f"{name}, undisturbed: exit code {ended.code}: {ended.output}")
    return case


def _current(out: Path) -> bytes | None:
    return content(out).get(MANIFEST)


def _incomplete(out: Path) -> list[str]:
    """Return what is missing of all kept generations."""
    damaged = [kept.damage for kept in list_generations(out) if kept.manifest is None]
    manifests = [kept.manifest for kept in list_generations(out) if kept.manifest is not None]
    paths = {path for manifest in manifests for path in receipt_paths(out, manifest)}
    return [*damaged, *(str(path) for path in sorted(paths) if not path.is_file())]


def _damaged_shard(before: Path) -> str | None:
    """Return the shard that is damaged before the command, by the stem of its files."""
    damage = verify(before, 1, lambda _: None) if (before / MANIFEST).exists() else []
    return damage[0].shard if damage else None
