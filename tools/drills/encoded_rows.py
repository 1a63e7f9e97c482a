"""Unpack changed rows of each encoding. They are refused by an error of ours, or have the size of the row.

    tools/run drills.encoded_rows [--count 1000000]

Exits 1 if anything else happens, or a row takes more than 5 seconds.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from program import parser

from drills.fuzz_targets import make_targets, mutated

NAMES = "zstd-row", "jpeg-row", "jpeg-part", "tiles-row", "tiles-zstd-row", "tiles-jpeg-row"


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--count", type=int, default=1_000_000, help="changed rows of each encoding")
    count = options.parse_args().count
    with tempfile.TemporaryDirectory() as folder:
        targets = make_targets(Path(folder))
    wrong: set[str] = set()
    for name in NAMES:
        found = {answer for data in mutated(targets[name], count) if (answer := targets[name].judge(data)) is not None}
        print(f"{name}: {count:,} changed rows, {len(found)} kinds of wrong answers", flush=True)
        wrong |= found
    print("\n".join(sorted(wrong)), end="\n" * bool(wrong))
    return int(bool(wrong))
