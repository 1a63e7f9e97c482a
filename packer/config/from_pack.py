"""The settings of a build whose rows come from a pack: what is not given stays as it is in the pack."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from packer.config.config import Setting, Settings
from packer.config.options import OPTIONS, Option
from packer.errors import UsageError
from packer.pixels.choices import IMAGE_DTYPES, NATIVE
from packer.publish.target import holds_pack
from readers.contract.fields import IMAGE, LABEL, classes_field, picture_field
from readers.contract.manifest import Manifest

DECIDED = (
    "classes",
    "ignore",
    "label-codec",
    "threshold",
    "palettes-differ",
    "unknown",
    "image-range",
    "alpha",
    "decode",
)
"""Options that say how files are read. The rows of a pack were read already."""


def settings_of(folder: Path) -> Settings:
    """Return the format, size, and types of a pack, as settings; none for a folder of files."""
    if not holds_pack(folder):
        return {}
    manifest = Manifest.load(folder)
    image, label = manifest.field(IMAGE), manifest.field(LABEL)
    dtypes = {dtype: name for name, dtype in IMAGE_DTYPES.items()}
    usual = (
        picture_field(IMAGE, image.dtype, image.size),
        classes_field(LABEL, label.form, manifest.classes, label.size),
    )
    if label.optional:
        raise UsageError(f"{folder}: has rows without a label, which cannot be packed again so far; build it from RAW")
    if manifest.fields != usual or image.dtype not in dtypes:
        raise UsageError(
            f"{folder}: only packs of images with red, green and blue and labels of classes can be packed again so far"
        )
    settings: dict[str, Setting] = {
        "format": manifest.storage,
        "labels": label.form,
        "image-dtype": dtypes[image.dtype],
    }
    return settings | {"size": NATIVE} if image.native else settings


def check_decided(folder: Path, settings: Mapping[str, Setting]) -> None:
    """Refuse options that say how files are read, if the rows come from a pack."""
    if not holds_pack(folder):
        return
    for name in DECIDED:
        if settings.get(name, _default(OPTIONS[name])) != _default(OPTIONS[name]):
            raise UsageError(
                f"--{name}: says how files are read, but {folder} is a pack, whose rows were read already; "
                f"leave it out, or build from the files"
            )


def _default(option: Option) -> Setting | None:
    if option.several:
        return []
    return False if option.is_flag else option.default
