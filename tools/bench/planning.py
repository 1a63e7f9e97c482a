"""Plan a pack of very many rows that a function returns: CPU seconds, and the highest memory of the process.

    tools/run bench.planning [--keys 1000000] [--length 20]

Nothing is built. *before* is the memory when everything is imported and no key exists.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from program import parser

from bench.cpu import cpu_seconds
from bench.free_rows import CLASSES, SIDE, load
from bench.machine import machine
from packer import Rows
from packer.config.effective import effective, from_python
from packer.plan.make_plan import make_plan
from packer.plan.request import Request


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--keys", type=int, default=1_000_000)
    options.add_argument("--length", type=int, default=20, help="the characters of a key")
    chosen = options.parse_args()

    def keys() -> Iterator[str]:
        return (f"{number:0{chosen.length}}" for number in range(chosen.keys))

    with tempfile.TemporaryDirectory() as temporary:
        settings = effective(from_python({"out": str(Path(temporary) / "out"), "classes": CLASSES, "labels": "index"}))
        request = Request.from_settings(settings, Rows(keys, load, sizes=(SIDE, SIDE)))
        before, started = peak(), cpu_seconds()
        plan = make_plan(request)
        print(machine())
        print(f"{plan.pieces} keys of {chosen.length} characters in {len(plan.specs)} shards: ", end="")
        print(f"{cpu_seconds() - started:.1f} s of CPU, at most {peak()} MiB (before: {before} MiB)")


def peak() -> int:
    """Return the highest resident memory of this process, in MiB."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


if __name__ == "__main__":
    main()
