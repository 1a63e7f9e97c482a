"""What is done to a pack in the drills: a pack before, a command, and the pack after the command ran unbroken."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from drills.interposed import run
from packer.packs.generations import list_generations, receipt_paths
from packer.packs.staged_copies import copy_folder
from packer.packs.verify import verify
from packer.publish.target import STAMPS
from readers.contract.errors import NoPackError, ReadError
from readers.contract.manifest import GENERATIONS, MANIFEST, SHARDS, STORAGES, Manifest
from readers.contract.receipt import SUFFIX


@dataclass(frozen=True)
class Scene:
    """A command for a pack, as it was before and as it is afterwards. Of `stage`, `raw` is the pack that is staged, and
    the others are folders in which its copy lies."""

    name: str
    command: str
    options: tuple[str, ...]
    raw: Path | None
    before: Path
    after: Path

    def arguments(self, out: Path) -> list[str]:
        """The command line that does it to `out`."""
        if self.command in ("build", "stage"):
            return [self.command, *self.options, str(self.raw), str(out)]
        return [self.command, str(out), *self.options, *([] if self.raw is None else [str(self.raw)])]

    def set(self, out: Path) -> None:
        """Have `out` be as it was before."""
        copy(self.before, out)

    def pack(self, out: Path) -> Path:
        """The pack that is changed."""
        return copy_folder(self.raw, out) if self.command == "stage" and self.raw else out

    def fault(self, out: Path) -> str | None:
        """What is wrong with a pack that was left alone half-way: neither as before nor as after, or not whole."""
        pack = self.pack(out)
        try:
            damage = [*map(str, verify(pack, 1, lambda _: None)), *_incomplete(pack)]
        except NoPackError:
            damage = []
        except ReadError as error:
            return str(error)
        if not self.is_before(out) and not self.is_after(out):
            return f"{pack / MANIFEST} is neither as before nor as after"
        known = _damaged_shard(self.pack(self.before))  # repair takes its receipt away before it builds it again
        damage = [line for line in damage if known is None or known not in line]
        return f"damaged: {damage}" if damage else None

    def is_before(self, out: Path) -> bool:
        """Whether its current generation is the one that was there."""
        return _current(self.pack(out)) == _current(self.pack(self.before))

    def is_after(self, out: Path) -> bool:
        """Whether its current generation is the one that the command makes."""
        return _current(self.pack(out)) == _current(self.pack(self.after))

    def difference(self, out: Path) -> str | None:
        """Where a pack differs from what the unbroken command makes."""
        left, right = content(self.pack(out)), content(self.pack(self.after))
        names = sorted(name for name in left.keys() | right.keys() if left.get(name) != right.get(name))
        return f"differs from an unbroken run in {', '.join(names)}" if names else None


def copy(source: Path, target: Path) -> None:
    """Have `target` be as `source`, which may not exist."""
    shutil.rmtree(target, ignore_errors=True)
    if source.exists():
        shutil.copytree(source, target)


def content(out: Path) -> dict[str, bytes]:
    """Everything that counts in a pack: what hints at the time or the number of a generation does not."""
    found = {}
    for path in sorted(out.rglob("*")):
        name = str(path.relative_to(out))
        if not path.is_file() or name.startswith(STAMPS) or name == ".lock":
            continue
        found[name] = path.read_bytes().replace(str(out).encode(), b"OUT")  # packer.toml tells it
        if path.suffix == ".json" and path.parent in (out, out / GENERATIONS):
            with suppress(ValueError):  # torn: different it is
                manifest = {**json.loads(found[name]), "created": "", "generation": 0, "checksum": ""}
                del found[name]
                place = name if path.parent == out else f"{GENERATIONS}/{manifest['table']}.json"
                found[place] = json.dumps(manifest).encode()
    return found


def leftovers(out: Path) -> list[str]:
    """Temporary files."""
    return [str(path) for path in out.rglob(".partial-*")]


def options(words: str | None) -> ArgumentParser:
    """The options that the drills of scenes share."""
    parser = ArgumentParser(description=words, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--format", choices=STORAGES, help="only this one")
    parser.add_argument("--scene", help="only this one")
    return parser


def chosen(told: Namespace) -> Iterator[tuple[Path, Scene]]:
    """The scenes of each format, with the folder that they are set in, which has the format's name."""
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_CACHE_HOME"] = f"{name}/cache"
        os.umask(0o077)  # a folder of copies is closed to others, also where a drill makes it again
        for storage in [told.format] if told.format else STORAGES:
            folder = Path(name) / storage
            folder.mkdir()
            yield from ((folder, one) for one in _scenes(folder, storage) if told.scene in (None, one.name))
            shutil.rmtree(folder)


def _scenes(folder: Path, storage: str) -> Iterator[Scene]:
    """A first build, the next night's, and what else changes a pack."""
    raw = folder / "raw"
    options = ("--quiet", "--format", storage, "--classes", "3", "--shard-size", "8KB", "--workers", "2")
    write_raw(raw, range(24))
    nothing, first, second = folder / "nothing", folder / "first", folder / "second"
    yield _scene("first build", "build", options, raw, nothing, first)
    write_raw(raw, range(20, 28), seed=1)
    yield _scene("next build", "build", options, raw, first, second)
    yield _scene("rollback", "rollback", ("1",), None, second, folder / "back")
    yield _scene("gc", "gc", ("--keep", "1", "--grace", "0s"), None, second, folder / "clean")
    broken = folder / "broken"
    copy(second, broken)
    stem = next(iter(receipt_paths(broken, Manifest.load(broken)))).name.removesuffix(SUFFIX)
    file = next(path for path in (broken / SHARDS).glob(f"{stem}*") if not path.name.endswith(SUFFIX))
    file.write_bytes(file.read_bytes()[:-1])
    yield _scene("repair", "repair", ("--quiet",), raw, broken, folder / "repaired")
    yield from _stage_scenes(folder, first, second)


def _stage_scenes(folder: Path, first: Path, second: Path) -> Iterator[Scene]:
    """A first copy of a pack, and the next generation of it."""
    source, place, options = folder / "source", folder / "place", ("--quiet", "--workers", "2")
    place.mkdir()
    copy(first, source)
    yield _scene("first copy", "stage", options, source, place, folder / "staged")
    copy(second, source)
    yield _scene("next copy", "stage", options, source, folder / "staged", folder / "again")


def write_raw(raw: Path, numbers: range, seed: int = 0) -> None:
    """Pairs of tiny pictures; the same seed makes the same."""
    dice = np.random.default_rng(seed)
    for kind in ("images", "labels"):
        (raw / kind).mkdir(parents=True, exist_ok=True)
    for number in numbers:
        cv2.imwrite(f"{raw}/images/{number:03d}.png", dice.integers(0, 256, (16, 16, 3), np.uint8))
        cv2.imwrite(f"{raw}/labels/{number:03d}.png", dice.integers(0, 3, (16, 16), np.uint8))


def _scene(name: str, command: str, options: tuple[str, ...], raw: Path | None, before: Path, after: Path) -> Scene:
    scene = Scene(name, command, options, raw, before, after)
    scene.set(after)
    ended = run(scene.arguments(after))
    if ended.code:
        raise SystemExit(f"{name}, unbroken: exit code {ended.code}: {ended.words}")
    return scene


def _current(out: Path) -> bytes | None:
    return content(out).get(MANIFEST)


def _incomplete(out: Path) -> list[str]:
    """What is missing of the kept generations, of which the current one is only one."""
    damaged = [one.damage for one in list_generations(out) if one.manifest is None]
    manifests = [one.manifest for one in list_generations(out) if one.manifest is not None]
    paths = {path for manifest in manifests for path in receipt_paths(out, manifest)}
    return [*damaged, *(str(path) for path in sorted(paths) if not path.is_file())]


def _damaged_shard(before: Path) -> str | None:
    """The shard that is damaged before the command, by the stem of its files."""
    damage = verify(before, 1, lambda _: None) if (before / MANIFEST).exists() else []
    return damage[0].shard if damage else None
