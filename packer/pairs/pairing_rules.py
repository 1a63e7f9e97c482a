"""`PairingRules`: how the user wants pairs to be found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packer.errors import UsageError
from packer.pairs.folds import FoldRule, Folds
from packer.pairs.further import LABEL, FurtherFiles
from packer.pairs.split_rule import SplitRule
from packer.pairs.template import has_channels

ERROR, KEEP = "error", "keep"
"""Stop at files without a partner, or pack images without a label; "skip" leaves them out."""


@dataclass(frozen=True)
class PairingRules:
    """The options that decide how pairs are found. Without any, the folder must have a known layout."""

    image: str | None = None
    label: str | None = None
    lists: str | None = None
    pairs: Path | None = None
    split: SplitRule | None = None
    split_by: str | None = None
    split_exact: bool = False
    missing: str = ERROR
    has_label: bool = True
    """False if rows have no label, so that only images are paired."""
    channels: tuple[str, ...] = ()
    """The channels that are the bands of an image; none means all, if the template of images has `{channel}`."""
    further: tuple[FurtherFiles, ...] = ()

    @classmethod
    def of_painted(cls, rules: Mapping[str, Any]) -> PairingRules:
        """Return the rules for pictures whose labels are painted: for the pairing, labels are further files."""
        if not rules.get("has_label", True):
            return cls(**rules)
        return cls(**{**rules, "has_label": False, "further": (FurtherFiles(LABEL, ""), *rules.get("further", ()))})

    @property
    def has_channels(self) -> bool:
        """True if each band of an image has a file."""
        return self.image is not None and has_channels(self.image)

    @property
    def keeps(self) -> bool:
        """True if images without a label are rows."""
        return self.missing == KEEP or not self.has_label

    def __post_init__(self) -> None:
        if self.has_label and bool(self.image) != bool(self.label):
            raise UsageError("--image and --label go together: give both templates")
        if self.pairs and (self.image or self.lists):
            raise UsageError("--pairs already names the files: leave out --image, --label and --lists")
        if isinstance(self.split, FoldRule):
            self._check_folds(self.split)
        elif self.split:
            self._check_split()
        for name in ("split_by", "split_exact"):
            if getattr(self, name) and not self.split:
                option = f"--{name.replace('_', '-')}"
                raise UsageError(f"{option}: needs --split, such as --split 80/10/10, or --folds")

    def _check_folds(self, folds: FoldRule) -> None:
        if self.split_exact and not isinstance(folds, Folds):
            raise UsageError(
                "--split-exact: draws a number of folds, such as --folds 5; a file names the cases of each"
            )

    def _check_split(self) -> None:
        if self.lists:
            raise UsageError("--split and --lists both set the splits: give only one of them")
        for files in self.further:
            if "{split" in files.template:
                raise UsageError(
                    f"--field {files.name}: {files.template} has {{split}}, but --split draws the splits from the "
                    "keys; leave {split} out, or write *"
                )
