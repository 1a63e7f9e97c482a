"""What a pack has published, to be compared with another's, and what is left lying about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from readers.contract.atomic import PARTIAL
from readers.contract.manifest import MANIFEST


def published(out: Path) -> dict[str, bytes]:
    """The files of the current generation that hold data: shards with receipts, and the table."""
    document = json.loads((out / MANIFEST).read_text())
    table = next(out.glob(f"generations/shards-{document['table'][:32]}.npy"))
    names = {record["fingerprint"].decode() for record in np.load(table)}
    shards = [path for path in out.glob("shards/*") if path.name.split(".")[0].rpartition("-")[2] in names]
    return {path.name: path.read_bytes() for path in [*shards, table]}


def facts(out: Path) -> dict[str, Any]:
    """The current manifest, but for what history decides: the number and the time, and so the checksum."""
    document: dict[str, Any] = json.loads((out / MANIFEST).read_text())
    return {name: value for name, value in document.items() if name not in ("generation", "created", "checksum")}


def same(one: Path, other: Path) -> bool:
    """Whether both have published the same, byte for byte."""
    return facts(one) == facts(other) and published(one) == published(other)


def temporary(out: Path) -> list[Path]:
    """What somebody was writing."""
    return list(out.rglob(f"{PARTIAL}*"))
