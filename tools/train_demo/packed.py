"""`Packed`: a pack that was built from a raw folder, and which raw files each of its rows was made of."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packer.config.last_build import last_settings
from packer.plan.make_plan import make_plan
from packer.plan.plan import Plan
from packer.plan.request import Request
from packer.recipe.piece import Piece
from packer.recipe.recipe import Recipe
from readers import SegDataset, open_dataset
from readers.contract.manifest import Manifest


@dataclass(frozen=True)
class Packed:
    """Both sides of the same rows. `seconds` is what the build took; None where the pack was there already."""

    raw: Path
    recipe: Recipe
    pieces: tuple[Piece, ...]
    dataset: SegDataset
    seconds: float | None


def pack(raw: Path, out: Path, size: str, options: Sequence[str], split: str | None) -> Packed:
    """Build the pack as a user would. Without `split`, the one of most rows is trained on."""
    command = [sys.executable, "-m", "packer", "build", "--quiet", "--json", "--labels", "index", "--size", size]
    done = subprocess.run([*command, *options, raw, out], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"packer build {raw} {out} ended with {done.returncode}")
    split = split or max(Manifest.load(out).splits, key=lambda one: one.rows).name
    dataset = open_dataset(out, split, label="index")
    request = Request.from_settings(last_settings(out, raw))
    plan = make_plan(request)
    if plan.recipe.image_dtype != "uint8" or plan.recipe.image_rules.image_range:
        raise SystemExit("the demo's own loading of raw files is for pictures that are packed as uint8")
    pieces = tuple(_packed_pieces(plan, split))
    if [piece.key for piece in pieces] != [dataset.key(row) for row in range(len(dataset))]:
        raise SystemExit(f"{raw}: changed while it was packed; run again")
    told = json.loads(done.stdout)
    return Packed(raw, plan.recipe, pieces, dataset, None if told["reused_rows"] else float(told["seconds"]))


def _packed_pieces(plan: Plan, split: str) -> list[Piece]:
    """In the order of the pack's rows, without rejects."""
    return [
        piece
        for number, spec in enumerate(plan.specs)
        if spec.split == split and number in plan.reused
        for kept in [set(plan.reused[number].keys)]
        for piece in spec.pieces
        if piece.key in kept
    ]
