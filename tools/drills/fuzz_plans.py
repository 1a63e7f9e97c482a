"""The target of fuzzing for plan folders. Digests are made right again, so that what is behind them is reached."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from drills.fuzz_target import Target
from packer.building.plan_build import plan_pack
from packer.errors import PackError
from packer.recipe.plan_folder import PLAN, RECORD, ROWS, SHARDS, SIZE, SIZES, PlanFolder, digest_of_shard
from readers.contract.errors import ReadError

NAMES = (PLAN, SHARDS, ROWS.format(0), SIZES)


def plans(raw: Path, folder: Path) -> Target:
    """Return the target: open a plan and read all of its specs. The first byte of the input selects the file."""
    if not (folder / PLAN).exists():
        plan_pack(raw, folder, classes=3, size=(3, 4), fit="tile", shard_size=400, workers=1)
    whole = {name: (folder / name).read_bytes() for name in NAMES}
    live = folder.with_name("live-plan")
    live.mkdir(exist_ok=True)

    def parse(data: bytes) -> None:
        name = NAMES[data[0] % len(NAMES) if data else 0]
        files = {**whole, name: data[1:]}
        if name != PLAN:
            _fit(files)
        for path, content in files.items():
            (live / path).write_bytes(content)
        opened = PlanFolder.open(live)
        for number in range(min(len(opened), 50)):
            opened.spec(number).to_text()

    seeds = tuple(bytes([number]) + whole[name] for number, name in enumerate(NAMES))
    return Target("plans", seeds, parse, (PackError, ReadError))


def _fit(files: dict[str, bytes]) -> None:
    """Make the sizes and digests of a plan right again, as far as its records can be read."""
    head, _, body = files[SHARDS].partition(b"\n")
    count = len(body) // RECORD.itemsize
    records = np.frombuffer(body, RECORD, count).copy()
    rows, sizes = files[NAMES[2]], files[SIZES].partition(b"\n")[2]
    for record in records:
        begin, first = int(record["begin"]), 2 * SIZE.itemsize * int(record["row"])
        lines = rows[begin : begin + int(record["bytes"])]
        pairs = sizes[first : first + 2 * SIZE.itemsize * int(record["rows"])]
        record["digest"] = np.void(digest_of_shard(lines, pairs))
    body = records.tobytes() + body[records.nbytes :]
    files[SHARDS] = head + b"\n" + body
    document: dict[str, Any] = json.loads(files[PLAN])
    document |= {"rows_files": [len(rows)], "records": hashlib.sha256(body).hexdigest()}
    files[PLAN] = json.dumps(document).encode()
