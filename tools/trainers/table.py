"""Run every program of this folder, and print what it found as one table: the parity of the bridges.

    tools/run trainers.table                 # of all that is installed
    tools/run trainers.table mmseg nnunet    # of some

A program whose library is missing is named, and left out. It takes a minute for each three programs.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from program import command, parser
from tables import markdown

OTHERS = ("__init__", "comparison", "speed", "table")
"""The other files of this folder: they are for all trainers."""
HEAD = ["program", "version", "samples", "numbers", "apart by", "labels", "of them differ", "loss", "metric", "note"]


def programs() -> list[str]:
    """Return the names of the programs of trainers."""
    return sorted({path.stem for path in Path(__file__).parent.glob("*.py")} - {*OTHERS})


def cells(name: str, facts: Mapping[str, Any]) -> list[str]:
    """Return the row of a comparison."""
    losses = [f"{facts['losses'][side][0]:.4g} → {facts['losses'][side][-1]:.4g}" for side in ("own", "pack")]
    scores = [f"{facts['scores'][side]:.4g}" for side in ("own", "pack")]
    return [
        name,
        facts["version"],
        str(facts["samples"]),
        f"{facts['values']:,}",
        f"{facts['most_apart']:.3g}",
        f"{facts['labels']:,}",
        str(facts["labels_apart"]),
        losses[0] if losses[0] == losses[1] else f"{losses[0]}; pack {losses[1]}",
        f"{facts['metric']} {scores[0] if scores[0] == scores[1] else ' and '.join(scores)}",
        facts["note"],
    ]


def rows(names: list[str]) -> Iterator[list[str]]:
    for name in names:
        done = subprocess.run(command(f"trainers.{name}"), capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{name}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
            continue
        yield cells(name, json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    options = parser(__doc__)
    options.add_argument("names", nargs="*", help="programs; by default all")
    names = options.parse_args().names or programs()
    print(*markdown([HEAD, *rows(names)], padded=False), sep="\n")


if __name__ == "__main__":
    main()
