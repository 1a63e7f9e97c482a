"""Plans and builds of tars and Parquet below a URL, next to the same files on this machine.

    tools/run bench.remote_archives [--pairs 2000] [--side 80] [--latency 50] [--files 4] [--rounds 3]

The server is a thread of this process that waits before each answer, as a network does. A picture is a PNG of noise:
with a side of 80 it has 19 KB. *again* is a build when nothing has changed. The packs are compared.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.parquet as pq
from drills.published import same
from drills.slow_bucket import served
from program import parser
from scenes.noise import write_noise
from tables import aligned

STEPS = {"plan": ["plan", "--dry-run"], "build": ["build", "--quiet"], "again": ["build", "--quiet"]}


def main() -> None:
    options = parser(__doc__)
    for name, default in (("pairs", 2000), ("side", 80), ("latency", 50), ("files", 4), ("rounds", 3)):
        options.add_argument(f"--{name}", type=int, default=default)
    chosen = options.parse_args()
    lines = [("", *(f"{step} s" for step in STEPS), *(f"requests of {step}" for step in STEPS))]
    with tempfile.TemporaryDirectory() as temporary, served(Path(temporary), chosen.latency / 1000) as requests:
        for number in range(chosen.pairs):
            write_noise(Path(temporary), f"{number:05}", (chosen.side, chosen.side), 4, number)
        for kind, write in (("tar", write_tar), ("parquet", write_parquet)):
            for number in range(chosen.files):
                file = Path(temporary) / f"b/{kind}/{number}.{kind}"
                file.parent.mkdir(parents=True, exist_ok=True)
                write(file, sorted(Path(temporary).glob("images/*"))[number :: chosen.files])
            outs: list[Path] = []
            for path in (f"{temporary}/b/{kind}", f"s3://b/{kind}"):
                outs.append(Path(temporary) / f"out-{len(outs)}")
                costs = [list(steps(path, outs[-1], requests)) for _ in range(chosen.rounds)]
                seconds = (f"{median(round_costs[step][0] for round_costs in costs):.2f}" for step in range(len(STEPS)))
                lines.append((f"{kind} {path[:5]}", *seconds, *(str(count) for _, count in costs[-1])))
            assert same(*outs)
    print(*aligned(lines), sep="\n")


def steps(path: str, out: Path, requests: list[str]) -> Iterator[tuple[float, int]]:
    """Yield the seconds and the requests of each step."""
    shutil.rmtree(out, ignore_errors=True)
    for command in STEPS.values():
        before, began = len(requests), time.perf_counter()
        given = [*command, "--labels", "index", "--classes", "4", "--from", path, str(out)]
        subprocess.run([sys.executable, "-m", "packer", *given], check=True, stdout=subprocess.DEVNULL)
        yield time.perf_counter() - began, len(requests) - before


def write_tar(file: Path, images: list[Path]) -> None:
    with tarfile.open(file, "w") as tar:
        for image in images:
            tar.add(image, f"{image.stem}.png")
            tar.add(image.parents[1] / "labels" / image.name, f"{image.stem}.seg.png")


def write_parquet(file: Path, images: list[Path]) -> None:
    labels = [(image.parents[1] / "labels" / image.name).read_bytes() for image in images]
    table = pa.table({"image": [image.read_bytes() for image in images], "label": labels})
    pq.write_table(table, file, row_group_size=100)


if __name__ == "__main__":
    main()
