"""HDF5: our reader of its metadata finds what libhdf5 finds, and our files depend on nothing but their arrays."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from packer.shards.formats import Arrays, hdf5
from readers.formats.hdf5_checksum import lookup3
from readers.formats.hdf5_metadata import Dataset, read_datasets

DTYPES = ("|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "|S1", "|S300")
FIXED = ("image", "label", "key")
NATIVE = ("image", "label", "size", "image_start", "label_start", "key")


def numbers(shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    size = np.dtype(dtype).itemsize * int(np.prod(shape))
    return np.frombuffer(np.random.default_rng(size).bytes(size), dtype).reshape(shape)


def written(folder: Path, arrays: Arrays) -> Path:
    (path,) = hdf5.write(folder / "shard", arrays, ())
    return path


def found(path: Path, arrays: Arrays) -> dict[str, Dataset]:
    return read_datasets(memoryview(path.read_bytes()), tuple(arrays))


@given(
    names=st.sampled_from([FIXED, NATIVE]),
    shapes=st.lists(st.lists(st.integers(1, 12), min_size=1, max_size=4).map(tuple), min_size=6, max_size=6),
    dtypes=st.lists(st.sampled_from(DTYPES), min_size=6, max_size=6),
)
def test_our_reader_finds_what_libhdf5_finds(
    tmp_path_factory: pytest.TempPathFactory,
    names: tuple[str, ...],
    shapes: list[tuple[int, ...]],
    dtypes: list[str],
) -> None:
    arrays = {name: numbers(shape, dtype) for name, shape, dtype in zip(names, shapes, dtypes, strict=False)}
    path = written(tmp_path_factory.mktemp("any"), arrays)
    ours = found(path, arrays)
    with h5py.File(path) as file:
        theirs = {name: Dataset(file[name].dtype, file[name].shape, file[name].id.get_offset()) for name in file}
    assert ours == theirs
    for name, (dtype, shape, start) in ours.items():
        assert path.read_bytes()[start:].startswith(arrays[name].tobytes()), (name, dtype, shape)


ARRAYS = {name: numbers((3, 5), "|u1") for name in FIXED}


def test_the_bytes_have_no_times(tmp_path: Path) -> None:
    """The root group is the first object. Before h5py 3.15, files get its times unless they are switched off."""
    data = written(tmp_path, ARRAYS).read_bytes()
    assert data[48:54] == b"OHDR\x02\x00"


@pytest.mark.parametrize(
    ("names", "digest"),
    [
        (FIXED, "d4d9aa3b2ede1700c65c47480a382414d850c2952de5b705ba54dc952537cf9a"),
        (NATIVE, "ddd6c090eda0ca0bb5f79798e6f3775e4ceaf6ee74ec0f90e1cd8c667e69221b"),
    ],
    ids=["fixed", "native"],
)
def test_the_bytes_do_not_depend_on_libhdf5(tmp_path: Path, names: tuple[str, ...], digest: str) -> None:
    arrays = {name: np.arange(6000, dtype="<f4").reshape(3, -1) for name in names}
    (path,) = hdf5.write(tmp_path / "shard", arrays, ())
    assert hashlib.sha256(path.read_bytes()).hexdigest() == digest


def test_a_root_group_with_times_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such shards were written with h5py before 3.15."""

    def create(path: Path) -> Any:
        properties, access = h5py.h5p.create(h5py.h5p.FILE_CREATE), h5py.h5p.create(h5py.h5p.FILE_ACCESS)
        properties.set_obj_track_times(True)
        access.set_libver_bounds(h5py.h5f.LIBVER_V18, h5py.h5f.LIBVER_V18)
        return h5py.h5f.create(bytes(path), h5py.h5f.ACC_TRUNC, properties, access)

    monkeypatch.setattr("packer.shards.formats.hdf5._create", create)
    path = written(tmp_path, ARRAYS)
    assert path.read_bytes()[48:54] == b"OHDR\x02\x20"
    assert sorted(found(path, ARRAYS)) == sorted(FIXED)


@pytest.mark.parametrize(
    ("data", "checksum"),
    [
        (b"", 0xDEADBEEF),
        (b"Four score and seven years ago", 0x17770551),
    ],
)
def test_the_checksum_is_that_of_lookup3(data: bytes, checksum: int) -> None:
    """The examples of lookup3.c."""
    assert lookup3(data) == checksum
