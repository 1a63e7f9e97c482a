"""Let a raw folder grow, change and shrink under `packer build --follow`, and kill it at random times.

    tools/run drills.follow [--rounds 40] [--seed 1]

Files are added, written in two pieces, written again, renamed and removed, labels long after their pictures. The packer
gets SIGKILL or SIGTERM now and then and starts again; sometimes `packer gc` runs. At the end of each round
the folder rests. Then the pack must be that of `packer build`, byte for byte. Exits 1 if it is not.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from program import parser
from scenes.noise import write_noise

from packer.building.run_build import build_pack
from packer.errors import BusyError, PackError
from packer.packs.garbage import delete_garbage
from packer.packs.verify_pack import verify_pack
from readers.contract.errors import ReadError
from readers.contract.manifest import SHARDS, Manifest, is_pack

SIDE, CLASSES, STEPS = 32, 4, 25
FLAGS = ("--classes", str(CLASSES), "--labels", "index", "--shard-size", "16KiB", "--missing", "skip", "--quiet")
PATIENCE = 120.0
"""Seconds after which a folder at rest must be packed."""


class Grower:
    """A raw folder, and the steps that change it."""

    def __init__(self, raw: Path, scratch: Path, dice: random.Random) -> None:
        self.raw, self._scratch, self._dice = raw, scratch, dice
        self.done = Counter[str]()
        self._pictures: list[str] = []
        self._number = 0

    def step(self) -> None:
        """Change something."""
        steps = (self._add, self._add, self._picture, self._label, self._slow, self._again, self._remove, self._rename)
        step = self._dice.choice(steps)
        step()
        self.done[step.__name__.strip("_")] += 1

    def finish(self) -> None:
        """Add a pair: a build of a folder without any is an error."""
        self._add()

    def _write(self, key: str, kinds: tuple[str, ...] = ("images", "labels")) -> list[tuple[Path, Path]]:
        """Make a pair elsewhere, and return the path of each file and where it belongs."""
        self._number += 1
        write_noise(self._scratch, key, (SIDE, SIDE), CLASSES, self._number)
        for kind in kinds:
            (self.raw / kind).mkdir(parents=True, exist_ok=True)
        return [(self._scratch / kind / f"{key}.png", self.raw / kind / f"{key}.png") for kind in kinds]

    def _key(self) -> str:
        return f"{self._dice.randrange(10**6):06}"

    def _keys(self) -> list[str]:
        return sorted(path.stem for path in (self.raw / "labels").glob("*.png"))

    def _add(self) -> None:
        for _ in range(self._dice.choice((1, 2, 20))):
            for source, target in self._write(self._key()):
                source.replace(target)

    def _picture(self) -> None:
        self._pictures.append(self._key())
        for source, target in self._write(self._pictures[-1], ("images",)):
            source.replace(target)

    def _label(self) -> None:
        while self._pictures:
            for source, target in self._write(self._pictures.pop(), ("labels",)):
                source.replace(target)

    def _slow(self) -> None:
        for source, target in self._write(self._key()):
            content = source.read_bytes()
            with target.open("wb") as file:
                file.write(content[: len(content) // 2])
                file.flush()
                time.sleep(self._dice.uniform(0, 4))
                file.write(content[len(content) // 2 :])

    def _again(self) -> None:
        for key in self._dice.sample(keys := self._keys(), min(3, len(keys))):
            for source, target in self._write(key):
                source.replace(target)

    def _remove(self) -> None:
        for key in self._dice.sample(keys := self._keys(), min(2, len(keys))):
            for kind in ("images", "labels"):
                (self.raw / kind / f"{key}.png").unlink(missing_ok=True)

    def _rename(self) -> None:
        for key in self._keys()[:1]:
            new = self._key()
            for kind in ("images", "labels"):
                path = self.raw / kind / f"{key}.png"
                path.rename(path.with_stem(new))


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=40)
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    dice, wrong, seen = random.Random(chosen.seed), 0, Counter[str]()
    for number in range(chosen.rounds):
        with tempfile.TemporaryDirectory() as temporary:
            fault = one_round(Path(temporary), dice, seen)
        if fault is not None:
            wrong += 1
            print(f"round {number}: {fault}", flush=True)
    print(f"{chosen.rounds} rounds, {wrong} wrong: {', '.join(f'{count} {name}' for name, count in seen.items())}")
    sys.exit(wrong > 0)


def one_round(folder: Path, dice: random.Random, seen: Counter[str]) -> str | None:
    """Let a folder grow. Return what is wrong in the end."""
    raw, out = folder / "raw", folder / "out"
    raw.mkdir()
    minutes = dice.choice((0, 60))
    follower, grower = start(raw, out, minutes), Grower(raw, folder / "scratch", dice)
    try:
        for _ in range(STEPS):
            grower.step()
            time.sleep(dice.choice((0, 0, 0.2, dice.uniform(0, 5))))
            if dice.random() < 0.2:
                number = dice.choice((signal.SIGKILL, signal.SIGTERM))
                seen[number.name] += 1
                follower.send_signal(number)
                follower.wait(PATIENCE)
                follower = start(raw, out, minutes)
            elif dice.random() < 0.1 and is_pack(out):
                seen["gc"] += 1
                with suppress(BusyError):
                    delete_garbage(out, keep=2, grace=0)
            if follower.poll() is not None:
                return f"packer ended with {follower.returncode}"
        grower.finish()
        seen.update(grower.done)
        if minutes:
            follower.kill()
            follower.wait()
            follower = start(raw, out, 0)  # the first round publishes
        return wait_for_rest(folder, out)
    finally:
        follower.kill()
        follower.wait()


def start(raw: Path, out: Path, minutes: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "packer", "build", "--follow", "--publish-every", str(minutes), *FLAGS]
    return subprocess.Popen(
        [*command, str(raw), str(out)], stdout=subprocess.DEVNULL, stderr=(out.with_name("log")).open("ab")
    )


def wait_for_rest(folder: Path, out: Path) -> str | None:
    """Wait until the pack is that of a build. Return how it differs if it never is."""
    built = folder / "built"
    options = {"classes": CLASSES, "labels": "index", "shard_size": "16KiB", "missing": "skip"}
    build_pack(folder / "raw", built, **options)  # type: ignore[arg-type]
    expected, until = Manifest.load(built), time.monotonic() + PATIENCE
    while not is_pack(out) or not Manifest.load(out).same_data(expected):
        if time.monotonic() > until:
            return f"the pack is not that of packer build: {(folder / 'log').read_text()[-2000:]}"
        time.sleep(0.2)
    try:
        damages = verify_pack(out, deep=True)
    except (PackError, ReadError) as error:
        return str(error)
    if damages:
        return f"damaged: {damages[:3]}"
    different = [path.name for path in (built / SHARDS).iterdir() if not same(path, out / SHARDS / path.name)]
    return f"other bytes: {different[:3]}" if different else None


def same(path: Path, other: Path) -> bool:
    return other.is_file() and path.read_bytes() == other.read_bytes()


if __name__ == "__main__":
    main()
