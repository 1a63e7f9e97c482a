"""The request: what the user asked for, one attribute per option of `packer build`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from packer.decoding.rules import MOST_PIXELS
from packer.pairs.find import PairingRules
from packer.pixels.label_codec import AUTO
from readers.contract.classes import ClassTable
from readers.contract.tiles import Size

MTIME, DIGEST = TRUSTS = ("mtime", "digest")
TASK_TIMEOUT = 300
"""Seconds that one pair may take. The largest picture takes a few; more is a decoder in an endless loop."""
MIB = 1 << 20


@dataclass(frozen=True)
class Request:
    """What the user asked for, one attribute per option of `packer build`; None where it is to be found out."""

    raw: Path
    out: Path
    storage: str = "npy"
    pairing: PairingRules = field(default_factory=PairingRules)
    classes: str | ClassTable | None = None
    ignore: tuple[str, ...] = ()
    label_codec: str = AUTO
    unknown: str = "error"
    threshold: int | None = None
    divisor: int = 1000
    size: Size | str | None = None
    fit: str | None = None
    overlap: int = 0
    edge: str = "pad"
    interpolation: str = "area"
    labels: str = "onehot"
    image_dtype: str = "uint8"
    image_range: tuple[float, float] | None = None
    alpha: str = "refuse"
    max_pixels: int = MOST_PIXELS
    shard_bytes: int = 128 * MIB
    palettes_differ: bool = False
    near_duplicates: bool = False
    workers: int = 1
    task_timeout: int = TASK_TIMEOUT
    trust: str = MTIME
    retry_bad: bool = False
