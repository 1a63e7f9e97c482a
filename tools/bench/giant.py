"""A pack of one giant picture and its label: seconds and memory of the build, and of windows that are read.

    tools/run bench.giant [--side 30000] [--format npy] [--image tiles:256] [--label tiles-zstd:256] [--keep FOLDER]

The picture and its label are BigTIFFs of deflate tiles, made of waves and noise. Memory is that of all processes of
the build together, without pages of files, which the kernel takes back when it needs them. Windows have random
positions. The pages of the pack were dropped before the first one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from statistics import median

from program import parser
from scenes.giant_tiff import CLASSES, make_giant

from readers.contract.fields import Field
from readers.contract.manifest import STORAGES
from readers.pack import Pack

WINDOW, WINDOWS = 512, 200
MIB = 1 << 20


def main() -> None:
    asked = parser(__doc__)
    asked.add_argument("--side", type=int, default=30000)
    asked.add_argument("--format", choices=STORAGES, default="npy")
    asked.add_argument("--image", default="tiles:256")
    asked.add_argument("--label", default="tiles-zstd:256")
    asked.add_argument("--keep", type=Path, help="a folder for the files, which are kept there")
    options = asked.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = options.keep or Path(temporary)
        raw, out = root / f"giant-{options.side}", Path(temporary) / "out"
        if not raw.is_dir():
            make_giant(raw, (options.side, options.side))
        raw_bytes = 4 * options.side**2
        seconds, memory = _build(raw, out, options.format, options.image, options.label)
        stored = sum(path.stat().st_size for path in (out / "shards").iterdir())
        print(f"{options.format}, image={options.image}, label={options.label}: {options.side}x{options.side} pixels")
        print(f"raw {raw_bytes / MIB:,.0f} MiB, stored {stored / MIB:,.0f} MiB")
        speed = raw_bytes / MIB / seconds
        print(f"build {seconds:.1f} s, {speed:,.0f} MiB/s of raw rows, {memory / MIB:,.0f} MiB of memory")
        for name, times in _read(out).items():
            middle, slowest = 1000 * median(times), 1000 * max(times)
            print(f"{name}: a window of {WINDOW}x{WINDOW} in {middle:.1f} ms, the slowest in {slowest:.1f}")


def _build(raw: Path, out: Path, storage: str, image: str, label: str) -> tuple[float, int]:
    """Build a pack. Return the seconds, and the largest memory of its processes."""
    encodings = ["--encode", f"image={image}", "--encode", f"label={label}"]
    classes = ["--classes", str(CLASSES), "--labels", "index"]
    command = ["build", "--size", "native", "--max-pixels", str(1 << 32), *classes, *encodings, "--format", storage]
    began, most = time.perf_counter(), 0
    with subprocess.Popen([sys.executable, "-m", "packer", *command, str(raw), str(out)]) as build:
        while build.poll() is None:
            most = max(most, _memory(build.pid))
            time.sleep(0.05)
    if build.returncode:
        raise SystemExit(build.returncode)
    return time.perf_counter() - began, most


def _memory(process: int) -> int:
    """Return the bytes of memory of a process and of all that it has started, without pages of files."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:  # it has ended
        return 0
    own = next((int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("RssAnon")), 0)
    return own + sum(_memory(int(child)) for child in children)


def _read(out: Path) -> dict[str, list[float]]:
    """Return the seconds that random windows of each field take."""
    for path in (out / "shards").iterdir():
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    pack = Pack.open(out)
    return {field.name: _times(pack, field) for field in pack.manifest.fields}


def _times(pack: Pack, field: Field) -> list[float]:
    shard, random, times = pack.shard(0), Random(0), list[float]()
    for _ in range(WINDOWS):
        top, left = (random.randrange(max(1, side - WINDOW)) for side in shard.size(0))
        began = time.perf_counter()
        shard.window(field, 0, (slice(top, top + WINDOW), slice(left, left + WINDOW)))
        times.append(time.perf_counter() - began)
    return times


if __name__ == "__main__":
    main()
