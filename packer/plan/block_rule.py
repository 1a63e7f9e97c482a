"""`BlockRule`: the splits of tiles are drawn by blocks of their pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from packer.errors import UsageError
from packer.pairs.split_by_hash import Shares
from packer.recipe.blocks import Blocks


@dataclass(frozen=True)
class BlockRule:
    """The shares of --split or --folds, and the blocks that get them in the place of whole pictures."""

    shares: Shares
    blocks: Blocks

    @classmethod
    def of(cls, sides: tuple[int, int], pairing: Mapping[str, Any], only: tuple[str, ...]) -> BlockRule:
        """Return the rule for a side and a margin, with the options that decide how pairs are found."""
        shares = pairing["split"]
        if not isinstance(shares, Shares):
            raise UsageError("--split-blocks: needs the shares of the splits, such as --split 80/20, or --folds 5")
        if pairing["split_by"] or pairing["split_exact"]:
            raise UsageError("--split-blocks: draws each block apart; leave --split-by and --split-exact out")
        if only:
            raise UsageError(f"--only {only[0]}: cannot be combined with --split-blocks; open this split alone")
        return cls(shares, Blocks(*sides, shares.parts))
