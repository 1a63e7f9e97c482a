"""The published files of a pack, for a comparison with another pack, and its temporary files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from readers.contract.atomic import PARTIAL
from readers.contract.manifest import MANIFEST


def published(out: Path) -> dict[str, bytes]:
    """Return the data files of the current generation: shards, receipts and the table."""
    document = json.loads((out / MANIFEST).read_text())
    table = next(out.glob(f"generations/shards-{document['table'][:32]}.npy"))
    names = {record["fingerprint"].decode() for record in np.load(table)}
    shards = [path for path in out.glob("shards/*") if path.name.split(".")[0].rpartition("-")[2] in names]
    return {path.name: path.read_bytes() for path in [*shards, table]}


def facts(out: Path) -> dict[str, Any]:
    """Return the current manifest without the entries that depend on history: number, time, checksum."""
    document: dict[str, Any] = json.loads((out / MANIFEST).read_text())
    return {name: value for name, value in document.items() if name not in ("generation", "created", "checksum")}


def same(first: Path, second: Path) -> bool:
    """Compare two published packs byte for byte."""
    return facts(first) == facts(second) and published(first) == published(second)


def temporary(out: Path) -> list[Path]:
    """Return the temporary files."""
    return list(out.rglob(f"{PARTIAL}*"))
