"""The formats of volumes by the suffixes of their files. A folder is a series of DICOM."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from packer.errors import BadPair
from packer.sources.volumes import metaimage, nrrd
from packer.sources.volumes.dicom import files_of_series, read_series
from packer.sources.volumes.metaimage import read_metaimage
from packer.sources.volumes.nifti import read_nifti
from packer.sources.volumes.nrrd import read_nrrd
from packer.sources.volumes.volume_header import VolumeHeader
from packer.sources.volumes.voxels import Voxels

Read = Callable[[Path], tuple[VolumeHeader, Voxels]]
READERS: Mapping[str, Read] = {
    ".nii": read_nifti,
    ".nii.gz": read_nifti,
    ".mha": read_metaimage,
    ".mhd": read_metaimage,
    ".nrrd": read_nrrd,
    ".nhdr": read_nrrd,
}
SUFFIXES = tuple(READERS)
_DATA_FILES = {metaimage.DETACHED: metaimage.data_file, nrrd.DETACHED: nrrd.data_file}
"""Find the second file of a volume that has one for its header and one for its numbers."""


def read_volume(path: Path) -> tuple[VolumeHeader, Voxels]:
    """Return the header of a volume, and where its numbers are. Raise BadPair if it is not one volume of numbers."""
    if path.is_dir():
        return read_series(path)
    name = path.name.lower()
    read = next(read for suffix, read in READERS.items() if name.endswith(suffix))
    return read(path)


def files_of(path: Path) -> list[Path]:
    """Return all files of a volume. One whose header cannot be read has one file."""
    if path.is_dir():
        return files_of_series(path)
    data_file = _DATA_FILES.get(path.suffix.lower())
    with suppress(BadPair, OSError):
        numbers = data_file(path) if data_file else None
        return [path] if numbers is None else [path, numbers]
    return [path]
