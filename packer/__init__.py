"""Pack folders of images and segmentation labels: `from packer import build_pack`. The command is `packer`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from packer.errors import (
    BusyError,
    EngineError,
    FindingsError,
    InputError,
    PackError,
    PartsError,
    PinnedError,
    RejectedError,
    SettingsError,
    TargetError,
    TooManyRejectsError,
    UsageError,
    VersionsError,
)

if TYPE_CHECKING:
    from packer.building import build_pack
    from packer.building.commit_plan import commit_pack
    from packer.building.plan_build import plan_pack, plan_part
    from packer.building.plan_parts import build_part
    from packer.packs.diff import diff_pack
    from packer.packs.forget import forget_row
    from packer.packs.index import index_pack
    from packer.packs.push import pull_pack, push_pack
    from packer.packs.repair import repair_pack
    from packer.packs.stage import stage_pack
    from packer.packs.stats import pack_stats
    from packer.packs.verify_pack import verify_pack
    from packer.packs.which import rows_of_file
    from packer.pixels.field_options import ClassesField, IdsField, MultilabelField, PictureField, ValuesField
    from packer.probe.probe import probe_folder
    from packer.progress import progress_bar
    from packer.sources.rows import Rows

    __version__: str

__all__ = [
    "BusyError",
    "ClassesField",
    "EngineError",
    "FindingsError",
    "IdsField",
    "InputError",
    "MultilabelField",
    "PackError",
    "PartsError",
    "PictureField",
    "PinnedError",
    "RejectedError",
    "Rows",
    "SettingsError",
    "TargetError",
    "TooManyRejectsError",
    "UsageError",
    "ValuesField",
    "VersionsError",
    "__version__",
    "build_pack",
    "build_part",
    "commit_pack",
    "diff_pack",
    "forget_row",
    "index_pack",
    "pack_stats",
    "plan_pack",
    "plan_part",
    "probe_folder",
    "progress_bar",
    "pull_pack",
    "push_pack",
    "repair_pack",
    "rows_of_file",
    "stage_pack",
    "verify_pack",
]

_FIELDS = "packer.pixels.field_options"
_MODULES = {
    **dict.fromkeys(("ClassesField", "IdsField", "MultilabelField", "PictureField", "ValuesField"), _FIELDS),
    "Rows": "packer.sources.rows",
    "build_pack": "packer.building",
    "build_part": "packer.building.plan_parts",
    "commit_pack": "packer.building.commit_plan",
    "diff_pack": "packer.packs.diff",
    "forget_row": "packer.packs.forget",
    "index_pack": "packer.packs.index",
    "pack_stats": "packer.packs.stats",
    "plan_pack": "packer.building.plan_build",
    "plan_part": "packer.building.plan_build",
    "probe_folder": "packer.probe.probe",
    "progress_bar": "packer.progress",
    "pull_pack": "packer.packs.push",
    "push_pack": "packer.packs.push",
    "repair_pack": "packer.packs.repair",
    "stage_pack": "packer.packs.stage",
    "rows_of_file": "packer.packs.which",
    "verify_pack": "packer.packs.verify_pack",
}


def __getattr__(name: str) -> object:
    """Import a name when it is first used.

    OpenCV takes a moment to load, and `readers` loads numpy: the command must do that with one thread of OpenBLAS.
    """
    if name == "__version__":
        return import_module("readers.contract").VERSION
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'packer' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
