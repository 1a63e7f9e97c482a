"""Our loader over packs in the other formats."""

from __future__ import annotations

from functools import partial

from bench.libraries import segpack
from readers.contract.manifest import STORAGES

write = partial(segpack.write, storages=[storage for storage in STORAGES if storage != "npy"])
loaders = segpack.loaders
