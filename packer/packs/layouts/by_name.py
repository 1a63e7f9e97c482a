"""The layouts by their names."""

from __future__ import annotations

from collections.abc import Callable

from packer.packs.layouts.coco import CocoLayout
from packer.packs.layouts.imagefolder import ImagefolderLayout
from packer.packs.layouts.layout import FolderLayout, Roles
from packer.packs.layouts.nnunet import NnunetLayout
from packer.packs.layouts.ultralytics import UltralyticsLayout
from packer.packs.layouts.voc import VocLayout

LAYOUTS: dict[str, Callable[[Roles], FolderLayout]] = {
    "coco": CocoLayout,
    "imagefolder": ImagefolderLayout,
    "nnunet": NnunetLayout,
    "ultralytics": UltralyticsLayout,
    "voc": VocLayout,
}
