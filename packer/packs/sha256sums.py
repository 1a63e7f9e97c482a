"""The SHA-256 of every file of a pack, in the form that `sha256sum --check` reads."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from packer.packs.generations import receipt_paths
from readers.contract.files import plain_file, sha256
from readers.contract.manifest import MANIFEST, Manifest, generation_path
from readers.contract.receipt import SUFFIX, Receipt
from readers.contract.shard_table import table_path
from readers.machine import usable_cores


def sha256sums(out: Path, workers: int | None = None) -> Iterator[str]:
    """Yield a line for each file of the current generation. The paths begin at `out`."""
    paths = list(_files(out))
    with ThreadPoolExecutor(workers or usable_cores()) as pool:
        digests = pool.map(lambda path: sha256(plain_file(out, path)), paths)
        yield from (f"{digest}  {path.relative_to(out)}" for digest, path in zip(digests, paths, strict=True))


def _files(out: Path) -> Iterator[Path]:
    manifest = Manifest.load(out)
    yield from (out / MANIFEST, generation_path(out, manifest.generation), table_path(out, manifest.table))
    for path in receipt_paths(out, manifest):
        yield path
        stem = path.name.removesuffix(SUFFIX)
        yield from (path.with_name(stem + file.suffix) for file in Receipt.load(path).files)
