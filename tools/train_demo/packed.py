"""`Packed`: a pack that was built from a raw folder, and the raw files of each of its rows."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packer.config.last_build import last_settings
from packer.pixels.label_rules import LabelRules
from packer.plan.make_plan import make_plan
from packer.plan.plan import Plan
from packer.plan.request import Request
from packer.recipe.piece import Piece
from packer.recipe.recipe import Recipe
from readers import SegDataset, open_dataset
from readers.contract.classes import ClassTable
from readers.contract.manifest import SHARDS, Manifest
from readers.contract.receipt import SUFFIX, Receipt


@dataclass(frozen=True)
class Packed:
    """The raw files and the packed rows. `seconds` is the time of the build, or None if the pack existed."""

    raw: Path
    recipe: Recipe
    pieces: tuple[Piece, ...]
    dataset: SegDataset
    seconds: float | None

    @property
    def label_rules(self) -> LabelRules:
        assert self.recipe.label is not None, "the demo packs labels"
        return self.recipe.label.label_rules

    @property
    def classes(self) -> ClassTable:
        assert self.recipe.classes is not None, "the demo packs labels"
        return self.recipe.classes


def pack(raw: Path, out: Path, size: str, options: Sequence[str], split: str | None) -> Packed:
    """Build the pack as a user would. Without `split`, take the one with most rows."""
    command = [sys.executable, "-m", "packer", "build", "--quiet", "--json", "--labels", "index", "--size", size]
    done = subprocess.run([*command, *options, raw, out], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"packer build {raw} {out} exited with {done.returncode}")
    split = split or max(Manifest.load(out).splits, key=lambda entry: entry.rows).name
    dataset = open_dataset(out, split, label="index")
    request = Request.from_settings(last_settings(out, raw))
    plan = make_plan(request)
    if plan.recipe.fields[0].dtype != "|u1" or plan.recipe.image_rules.image_range:
        raise SystemExit("the demo loads raw files as uint8 only; choose options that pack images as uint8")
    pieces = tuple(_packed_pieces(plan, split))
    if [piece.key for piece in pieces] != [dataset.key(row) for row in range(len(dataset))]:
        raise SystemExit(f"{raw}: changed during the build; run again")
    summary = json.loads(done.stdout)
    seconds = None if summary["reused_rows"] else float(summary["seconds"])
    return Packed(raw, plan.recipe, pieces, dataset, seconds)


def _packed_pieces(plan: Plan, split: str) -> list[Piece]:
    """Return the pieces in the order of the rows, without rejects."""
    return [
        piece
        for number, spec in enumerate(plan.specs)
        if spec.split == split and number in plan.reused
        for kept in [set(_receipt(plan, number).keys)]
        for piece in spec.pieces
        if piece.key in kept
    ]


def _receipt(plan: Plan, number: int) -> Receipt:
    return Receipt.load(plan.out / SHARDS / (plan.reused[number].stem + SUFFIX))
