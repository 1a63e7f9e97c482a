"""The settings of a build whose rows come from a pack: what is not given stays unchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from packer.config.config import Setting, Settings
from packer.config.options import OPTIONS
from packer.errors import UsageError
from packer.pixels.choices import IMAGE_DTYPES, LABEL_FORMS, NATIVE
from packer.pixels.jpeg_rules import KEEP
from packer.publish.target import holds_pack
from readers.contract.fields import IMAGE, LABEL, READABLE, Field
from readers.contract.manifest import Manifest

DECIDED = (
    "classes",
    "ignore",
    "label-codec",
    "threshold",
    "palettes-differ",
    "unknown",
    "nodata-label",
    "image-range",
    "alpha",
    "bands",
    "nodata",
    "times",
    "field",
    "decode",
    "slide-level",
)
"""Options that say how files are read. The rows of a pack were read already."""


def settings_of(folder: Path) -> Settings:
    """Return the format, size, types and encodings of a pack, as settings; none for a folder of files."""
    if not holds_pack(folder):
        return {}
    manifest = Manifest.load(folder)
    fields = {field.name: field for field in manifest.fields}
    names = {dtype: name for name, dtype in IMAGE_DTYPES.items()}
    settings: dict[str, Setting] = {"format": manifest.storage}
    if LABEL in fields and fields[LABEL].form in LABEL_FORMS:
        settings["labels"] = fields[LABEL].form
    if IMAGE in fields and fields[IMAGE].dtype in names:
        settings["image-dtype"] = names[fields[IMAGE].dtype]
    encoded = [field for field in manifest.fields if field.is_encoded and field.encoding in READABLE]
    if encoded:
        settings["encode"] = [_encoding(field) for field in encoded]
    return settings | {"size": NATIVE} if manifest.fields[0].native else settings


def _encoding(field: Field) -> str:
    """Return the encoding that stores the rows of a field unchanged. A second JPEG would lose a second time."""
    words = [field.encoding]
    if field.tile is not None:
        words.append("x".join(map(str, field.tile)))
    if field.is_jpeg:
        words.append(KEEP)
    return f"{field.name}={':'.join(words)}"


def with_kept(asked: Sequence[str], kept: Sequence[str]) -> list[str]:
    """Return the encodings that are asked for, and the encodings of a pack for the fields that they do not name."""
    named = [text.partition("=")[0].strip() for text in asked]
    return [*(text for text in kept if text.partition("=")[0] not in named), *asked]


def check_decided(folder: Path, settings: Mapping[str, Setting]) -> None:
    """Refuse options that say how files are read, if the rows come from a pack."""
    if not holds_pack(folder):
        return
    for name in DECIDED:
        unset = OPTIONS[name].unset
        if settings.get(name, unset) not in (unset, []):
            raise UsageError(
                f"--{name}: says how files are read, but {folder} is a pack, whose rows were read already; "
                f"leave it out, or build from the files"
            )
