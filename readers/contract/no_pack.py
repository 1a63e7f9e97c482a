"""The message for a folder that is not a packed data set: what the folder is, and the command that fits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_MANIFEST, _MARK, _LIVE = "manifest.json", ".segpack", "live"
_PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".jp2", ".bmp", ".webp", ".npy")
_VOLUMES = (".nii", ".nii.gz", ".mha", ".mhd", ".nrrd", ".nhdr")
_MOST_ENTRIES, _MOST_DEPTH = 5000, 5


def why_no_pack(root: Path, missing: Path) -> str:
    """Return what is at `root`, where the manifest `missing` was expected, and what to do."""
    none = f"{root}: no packed data set here ({missing.name} is missing)"
    if missing.name != _MANIFEST and (root / _MANIFEST).is_file():
        return (
            f"{root}: generation {missing.stem.lstrip('0')} is not kept here ({missing.name} is missing): "
            f"packer gc deletes old generations. List those that are left with: packer log {root}"
        )
    if not root.exists():
        return f"{root}: there is no such folder; make a packed data set there with: packer build RAW {root}"
    if not root.is_dir():
        return f"{root}: is a file; a packed data set is a folder, made with: packer build RAW OUT"
    if (root.parent / _MANIFEST).is_file() and (root.parent / _MARK).exists():
        return f"{none}: it is a part of the packed data set {root.parent}"
    if (root / _MARK).exists():
        so_far = f"; look at what is there with: packer view {root}" if (root / _LIVE / _MANIFEST).is_file() else ""
        return f"{none}: a build was begun and has published nothing; go on with: packer build RAW {root}{so_far}"
    packs = sorted(path.parent for path in root.glob(f"*/{_MARK}") if (path.parent / _MANIFEST).is_file())
    if packs:
        return f"{none}: there is one in {packs[0]}"
    if any(name.lower().endswith(_PICTURES) for name in _names(root)):
        return (
            f"{none}: it is a folder of raw pictures. Look at it with: packer probe {root}; pack it with: "
            f"packer build {root} OUT; then open OUT"
        )
    if any(name.lower().endswith(_VOLUMES) for name in _names(root)):
        return (
            f"{none}: it is a folder of volumes. Look at it with: packer probe {root}; pack it with: "
            f"packer build --from {root} OUT; then open OUT"
        )
    return f"{none}; make one with: packer build RAW {root}"


def _names(root: Path) -> Iterator[str]:
    """Yield the names of some files of a folder, and of those below it."""
    folders, left = [(root, 0)], _MOST_ENTRIES
    while folders and left > 0:
        folder, depth = folders.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    left -= 1
                    if left < 0:
                        return
                    if entry.is_dir(follow_symlinks=False):
                        if depth < _MOST_DEPTH:
                            folders.append((Path(entry.path), depth + 1))
                    else:
                        yield entry.name
        except OSError:
            continue
