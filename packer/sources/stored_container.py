"""`StoredContainer`: a container below a URL, known by the names that are listed and by the head of its first file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packer.errors import InputError
from packer.pairs.paths import is_picture
from packer.recipe.source import Source
from packer.sources.archives.archive import ArchiveSource
from packer.sources.archives.stored_files import StoredFiles
from packer.sources.container import Names
from readers.contract.manifest import MANIFEST, MARK, SHARDS

_ONLY_HERE = {
    "zarr": re.compile(r"(\.zgroup|\.zarray|zarr\.json|attributes\.json)"),
    "hugging-face": re.compile(r"(dataset_dict|state)\.json"),
    "lmdb-pictures": re.compile(r"(.*/)?[^/]*\.(mdb|lmdb)"),
    "npy": re.compile(r"[^/]*\.npy"),
    "torch": re.compile(r"[^/]*\.pth?"),
    "nifti": re.compile(r"(.*/)?[^/]*\.(nii|nii\.gz|mha|mhd|nrrd|nhdr|dcm)"),
}
"""Names in folders of the kinds that are read from a disk alone."""


@dataclass(frozen=True)
class StoredContainer:
    """Files of one kind in a store, as a `Container`."""

    source: type[ArchiveSource]
    stored: StoredFiles

    @property
    def kind(self) -> str:
        return self.source.kind

    def fits(self, path: Path, head: bytes) -> bool:
        return True  # it was stored by its head

    def at(self, path: Path, names: Names) -> Source:
        return self.source.of(self.stored.with_suffix(self.source.suffix), names, self.stored.url)

    def from_json(self, facts: dict[str, Any]) -> Source:
        return self.source.from_json(facts)


def container_in_store(url: str, classes: Sequence[Any], head_size: int) -> StoredContainer | None:
    """Return the container at a URL; None if it is a folder of files. Refuse a kind that is not read from stores."""
    stored = StoredFiles.find(url)
    _refuse_pack(url, stored)
    archives = [archive for archive in classes if issubclass(archive, ArchiveSource) and archive.in_stores]
    if stored.is_folder:
        source = next((archive for archive in archives if stored.holds_only(archive.suffix)), None)
        kind = next((kind for kind, names in _ONLY_HERE.items() if _has_only(stored, names)), None)
    else:
        head, path = stored.head(head_size), Path(url)
        source = next((kind_class for kind_class in classes if kind_class.fits(path, head)), None)
        if source is None:
            raise InputError(f"{url}: is a file of an unknown kind; expected a container of rows, or a folder")
        kind = None if source in archives else source.kind
    if kind is not None:
        raise InputError(
            f"{url}: holds rows of the kind {kind}, which are read from a disk alone; copy it to this machine, and "
            "name the copy with --from. Tars, Parquet, TFRecord and RecordIO are read where they are"
        )
    return None if source is None else StoredContainer(source, stored)


def _refuse_pack(url: str, stored: StoredFiles) -> None:
    names = stored.listed
    has_shards = MANIFEST in names and any(name.startswith(f"{SHARDS}/") for name in names)
    if stored.is_folder and (MARK in names or has_shards):
        raise InputError(f"{url}: is a pack; to pack its rows again, copy it first: packer pull {url} FOLDER")


def _has_only(stored: StoredFiles, names: re.Pattern[str]) -> bool:
    """Return whether a folder has files with these names, and no other pictures."""
    matches = {name for name in stored.listed if names.fullmatch(name)}
    return bool(matches) and not any(is_picture(name) for name in stored.listed if name not in matches)
