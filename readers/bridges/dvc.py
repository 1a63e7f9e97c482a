"""DVC: a `.dvc` file for the manifest of a pack, which names all of its bytes, with the receipt of a training in it.

from readers.bridges.dvc import write_dvc

write_dvc(loader.receipt(), "out/")        # out/manifest.json.dvc, for Git; dvc status says whether the pack is it
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import yaml

from readers.contract.atomic import write_atomic
from readers.contract.errors import RequestError
from readers.contract.manifest import MANIFEST, Manifest
from readers.training_receipt import packs_of


def write_dvc(receipt: dict[str, Any], out: str | os.PathLike[str]) -> Path:
    """Write OUT/manifest.json.dvc for the folder of a pack that a training read, and return its path.

    Raises RequestError if another generation is current: its manifest is not the one of the receipt.
    """
    folder = Path(out)
    text = (folder / MANIFEST).read_bytes()
    current = Manifest.from_text(text.decode(), folder / MANIFEST)
    generations = {facts["pack"]["manifest"]: facts["pack"]["generation"] for facts in packs_of(receipt).values()}
    if current.identity not in generations:
        others = ", ".join(map(str, generations.values()))
        raise RequestError(
            f"{folder}: generation {current.generation} is current, and the receipt is of generation {others}; "
            f"to go back: packer rollback {folder} NUMBER"
        )
    output = {"md5": hashlib.md5(text, usedforsecurity=False).hexdigest(), "size": len(text), "hash": "md5"}
    document = {"outs": [{**output, "path": MANIFEST, "cache": False}], "meta": {"segpack": receipt}}
    path = folder / f"{MANIFEST}.dvc"
    write_atomic(path, yaml.safe_dump(document, sort_keys=False))
    return path
