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

from packer.shards.formats import ShardArrays, hdf5
from readers.formats.hdf5_checksum import lookup3
from readers.formats.hdf5_metadata import Dataset, read_datasets

DTYPES = ("|u1", "<u2", "<i2", "<u4", "<u8", "<f2", "<f4", "|S1", "|S300")
FIXED = ("image", "label", "key")
NATIVE = ("image", "label", "size", "image_end", "label_end", "key")


def numbers(shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    size = np.dtype(dtype).itemsize * int(np.prod(shape))
    return np.frombuffer(np.random.default_rng(size).bytes(size), dtype).reshape(shape)


def written(folder: Path, arrays: ShardArrays) -> Path:
    (path,) = hdf5.write(folder / "shard", arrays, ())
    return path


def found(path: Path, arrays: ShardArrays) -> dict[str, Dataset]:
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
    """The root group is the first object."""
    data = written(tmp_path, ARRAYS).read_bytes()
    assert data[48:54] == b"OHDR\x02\x01"


@pytest.mark.parametrize(
    ("names", "digest"),
    [
        (FIXED, "c85520301b22a14e86202a7d0c342b1fa4641c0711cfac170a9d28f9d165d2a0"),
        (NATIVE, "4d4c9cad3dae0c022cfadb07174b0abaee3aaaea906827d9187ada603e25c2f6"),
    ],
    ids=["fixed", "native"],
)
def test_the_bytes_are_always_the_same(tmp_path: Path, names: tuple[str, ...], digest: str) -> None:
    arrays = {name: np.arange(6000, dtype="<f4").reshape(3, -1) for name in names}
    (path,) = hdf5.write(tmp_path / "shard", arrays, ())
    assert hashlib.sha256(path.read_bytes()).hexdigest() == digest


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
