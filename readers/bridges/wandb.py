"""Weights & Biases: the packs of a training as artifacts by reference: no byte of a pack is sent, only its manifest.

from readers.bridges.wandb import use_packs

with wandb.init(project="streets") as run:
    use_packs(run, loader.receipt())
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import wandb

from readers.contract.manifest import MANIFEST, generation_path
from readers.stores.open_store import is_url
from readers.training_receipt import packs_of


def use_packs(run: Any, receipt: dict[str, Any]) -> list[Any]:
    """Note the packs of a receipt as artifacts that the run uses, and return them; a run without network logs them.

    A pack that did not change is the same version of its artifact. The receipt is in the configuration of the run.
    """
    packs = packs_of(receipt)
    run.config.update({f"{receipt.get('split', 'packs')}_receipt": receipt}, allow_val_change=True)
    return [_noted(run, _artifact(name, facts["pack"])) for name, facts in packs.items()]


def _artifact(name: str, pack: dict[str, Any]) -> Any:
    """Return a pack as an artifact with its manifest: by its checksum, and by where it is."""
    artifact = wandb.Artifact(re.sub(r"[^\w.-]", "-", name), "dataset", metadata=pack)
    with artifact.new_file("checksum.txt") as file:
        file.write(f"{pack['manifest']}\n")
    root = pack["root"]
    if is_url(root):
        artifact.add_reference(f"{root.rstrip('/')}/{MANIFEST}", checksum=False)
    else:
        artifact.add_reference(generation_path(Path(root), pack["generation"]).as_uri(), MANIFEST)
    return artifact


def _noted(run: Any, artifact: Any) -> Any:
    return run.log_artifact(artifact) if run.offline else run.use_artifact(artifact)
