"""CPU seconds of `packer report` and `packer card`, and the size of a report without its pictures.

    tools/run bench.many_rows OUT
    tools/run bench.reporting OUT [--rounds 5]

Time includes the start of the command. Each figure is the median of all rounds, in brackets the least and the most.
"""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from program import parser
from tables import line, spread

WIDTHS = (-34, 24)
PICTURE = re.compile(r"data:image/[^\"]*")


def main() -> None:
    options = parser(__doc__)
    options.add_argument("out", type=Path)
    options.add_argument("--rounds", type=int, default=5)
    chosen = options.parse_args()
    with TemporaryDirectory() as folder:
        report, card = Path(folder) / "report.html", Path(folder) / "README.md"
        commands = {
            "packer report": ["report", "--quiet", str(chosen.out), "-o", str(report)],
            "packer card": ["card", str(chosen.out), "-o", str(card)],
        }
        print(line(("CPU time with the start", "ms"), WIDTHS))
        for name, command in commands.items():
            spent = [1000 * cpu_of(command) for _ in range(chosen.rounds)]
            print(line((name, spread(spent)), WIDTHS))
        text = report.read_text(encoding="utf-8")
        pictures = sum(map(len, PICTURE.findall(text)))
        print(line(("report without its pictures, kB", f"{(len(text.encode()) - pictures) / 1000:.0f}"), WIDTHS))
        print(line(("its pictures, kB", f"{pictures / 1000:.0f}"), WIDTHS))


def cpu_of(command: Sequence[str]) -> float:
    """Return the user and system seconds of a command and of the processes that it waits for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "packer", *command], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
