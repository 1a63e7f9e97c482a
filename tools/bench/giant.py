"""A pack of one giant picture or volume and its label: seconds and memory of the build, of commands that look at all
of it, and of windows that are read.

    tools/run bench.giant [--side 30000] [--format npy] [--image tiles:256] [--label tiles-zstd:256] [--keep FOLDER]
    tools/run bench.giant --volume nii.gz --side 1024 --image tiles:64 --label tiles-zstd:64
    tools/run bench.giant --slide --side 20000
    tools/run bench.giant --tiles 512

The picture and its label are BigTIFFs of deflate tiles, made of waves and noise. A volume has half as many slices as
lines, of 16 bits, and is a NIfTI file or a TIFF with many pages of deflate. A slide is an Aperio SVS with three levels
of JPEG tiles, and openslide alone also decodes it. With --tiles the picture is cut into rows of this side, and their
labels are extracted as predictions. Memory is that of all processes together, without pages of files, which the kernel
takes back when it needs them. Windows have random positions. The pages of the pack were dropped before
the first one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from math import prod
from operator import add
from pathlib import Path
from random import Random
from statistics import median

import numpy as np
from program import parser
from scenes.giant_tiff import CLASSES, make_giant, picture_lines
from scenes.giant_volume import VOLUMES, make_volume
from scenes.slide_files import TILE, write_slide

from packer.decoding.slide import open_slide
from readers import open_dataset
from readers.contract.fields import Field
from readers.contract.manifest import STORAGES
from readers.contract.tiles import size_text
from readers.pack import Pack

WINDOW, WINDOWS = 512, 200
SLIDE = Path("images/giant.svs")
MIB = 1 << 20


def main() -> None:
    asked = parser(__doc__)
    asked.add_argument("--side", type=int, default=30000)
    asked.add_argument("--volume", choices=VOLUMES, help="the form of a volume; without it a picture")
    asked.add_argument("--slide", action="store_true", help="have the picture in a slide")
    asked.add_argument("--tiles", type=int, help="cut tiles of this side")
    asked.add_argument("--format", choices=STORAGES, default="npy")
    asked.add_argument("--image", default="tiles:256")
    asked.add_argument("--label", default="tiles-zstd:256")
    asked.add_argument("--keep", type=Path, help="a folder for the files, which are kept there")
    options = asked.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = options.keep or Path(temporary)
        form = options.volume or SLIDE.suffix * options.slide
        raw, out = root / f"giant-{options.side}{form}", Path(temporary) / "out"
        size = options.side, options.side
        sides = size if options.volume is None else (options.side // 2, *size)
        if not raw.is_dir():
            _make(raw, sides, form)
        if options.tiles:
            _cut(raw, Path(temporary), options.tiles, options.format)
            return
        if options.slide:
            print(f"openslide alone: {_decoded(raw / SLIDE):.1f} s")
        raw_bytes = prod(sides) * (4 if options.volume is None else 3)
        source = [str(raw)] if options.volume is None else _volume_options(raw, options.volume)
        encodings = ["--encode", f"image={options.image}", "--encode", f"label={options.label}"]
        rows = ["--size", "native", "--max-pixels", str(1 << 32), "--classes", str(CLASSES), "--labels", "index"]
        build = ["build", *rows, *encodings, "--format", options.format, *source, str(out)]
        seconds, memory = _run(*build)
        stored = sum(path.stat().st_size for path in (out / "shards").iterdir())
        print(f"{options.format}, image={options.image}, label={options.label}: {size_text(sides)} pixels")
        print(f"raw {raw_bytes / MIB:,.0f} MiB, stored {stored / MIB:,.0f} MiB")
        speed = raw_bytes / MIB / seconds
        print(f"build {seconds:.1f} s, {speed:,.0f} MiB/s of raw rows, {memory / MIB:,.0f} MiB of memory")
        for name, looked in _looks(out, Path(temporary)).items():
            seconds, memory = _run(*looked)
            print(f"{name} {seconds:.1f} s, {memory / MIB:,.0f} MiB of memory")
        for name, times in _read(out).items():
            middle, slowest = 1000 * median(times), 1000 * max(times)
            window = size_text(_window(len(sides)))
            print(f"{name}: a window of {window} in {middle:.1f} ms, the slowest in {slowest:.1f}")


def _make(raw: Path, sides: tuple[int, ...], form: str) -> None:
    """Write the files of a picture, a slide or a volume, and of its label."""
    if form in VOLUMES:
        make_volume(raw, sides, form)
        return
    height, width = sides
    make_giant(raw, (height, width), picture=not form)
    if form:
        write_slide(raw / SLIDE, (height, width), picture_lines((height, width)))


def _cut(raw: Path, folder: Path, tile: int, storage: str) -> None:
    """Build a pack of tiles, and extract their labels as predictions."""
    tiles = ["--fit", "tile", "--size", f"{tile}x{tile}", "--max-pixels", str(1 << 32), "--classes", str(CLASSES)]
    options = [*tiles, "--labels", "index", "--format", storage]
    seconds, memory = _run("build", *options, str(raw), str(folder / "out"))
    rows = open_dataset(folder / "out", fields=("label",))
    print(f"{len(rows)} tiles: {seconds:.1f} s, {memory / MIB:,.0f} MiB of memory")
    for row in range(len(rows)):
        path = folder / "predictions" / f"{rows.key(row)}.npy"
        path.parent.mkdir(exist_ok=True)
        np.save(path, rows[row][0].numpy())
    command = ["extract", "--predictions", str(folder / "predictions"), str(folder / "out"), str(folder / "maps")]
    seconds, memory = _run(*command)
    print(f"their predictions as a TIFF: {seconds:.1f} s, {memory / MIB:,.0f} MiB of memory")


def _decoded(path: Path) -> float:
    """Return the seconds in which openslide decodes all lines of a slide, those of its tiles together."""
    began, slide = time.perf_counter(), open_slide(path)
    width, height = slide.dimensions
    for top in range(0, height, TILE):
        slide.read_region((0, top), 0, (width, min(TILE, height - top)))
    return time.perf_counter() - began


def _volume_options(raw: Path, form: str) -> list[str]:
    """Return the options that name a volume."""
    return ["--volumes", *([str(raw)] if form == "tif" else ["--from", str(raw)])]


def _looks(out: Path, folder: Path) -> dict[str, list[str]]:
    """Return the commands that look at all of a row, or show it."""
    return {
        "verify --deep": ["verify", "--deep", str(out)],
        "inspect": ["inspect", str(out), "giant"],
        "sheet": ["sheet", str(out), "-o", str(folder / "sheet.png")],
        "report": ["report", str(out), "-o", str(folder / "report.html")],
    }


def _run(*command: str) -> tuple[float, int]:
    """Run a command. Return the seconds, and the largest memory of its processes."""
    began, most = time.perf_counter(), 0
    with subprocess.Popen([sys.executable, "-m", "packer", *command], stdout=subprocess.DEVNULL) as running:
        while running.poll() is None:
            most = max(most, _memory(running.pid))
            time.sleep(0.02)
    if running.returncode:
        raise SystemExit(running.returncode)
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


def _window(sides: int) -> tuple[int, ...]:
    return (WINDOW,) * 2 if sides == 2 else (WINDOW // 4,) * 3


def _times(pack: Pack, field: Field) -> list[float]:
    shard, random, times = pack.shard(0), Random(0), list[float]()
    for _ in range(WINDOWS):
        size = _window(len(shard.size(0)))
        starts = [random.randrange(max(1, side - length)) for side, length in zip(shard.size(0), size, strict=True)]
        began = time.perf_counter()
        shard.window(field, 0, tuple(map(slice, starts, map(add, starts, size))))
        times.append(time.perf_counter() - began)
    return times
