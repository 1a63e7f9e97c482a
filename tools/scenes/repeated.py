"""`repeat_shard`: a pack that says that it has its shard many times over, for what must not grow with its shards."""

from __future__ import annotations

import hashlib
import io
from dataclasses import replace
from pathlib import Path

import numpy as np

from readers.contract.manifest import MANIFEST, Manifest, generation_path
from readers.contract.shard_table import RECORD, table_path


def repeat_shard(out: Path, times: int) -> None:
    """Make a pack of one shard say that it has this shard `times` over."""
    manifest = Manifest.load(out)
    assert manifest.shards == 1
    records = np.repeat(np.load(table_path(out, manifest.table)), times)
    records["end"] = manifest.rows * np.arange(1, times + 1, dtype=np.uint64)
    assert records.dtype == RECORD
    buffer = io.BytesIO()
    np.save(buffer, records)
    digest = hashlib.sha256(buffer.getvalue()).hexdigest()
    table_path(out, digest).write_bytes(buffer.getvalue())
    (part,) = manifest.splits[0].parts
    whole = replace(part, rows=manifest.rows * times, shards=times)
    split = replace(manifest.splits[0], rows=whole.rows, shards=times, parts=(whole,))
    text = replace(manifest, splits=(split,), table=digest).to_text()
    generation_path(out, 1).write_text(text)
    (out / MANIFEST).write_text(text)
