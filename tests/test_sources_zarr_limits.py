"""Arrays of Zarr that claim too much are refused in words, before a chunk is opened; a listing is bounded."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from stored_scenes import write_array

from packer.errors import BadPair, InputError
from packer.recipe.row_ref import RowRef
from packer.sources.arrays import zarr_arrays
from packer.sources.arrays.kept_rows import KeptRows
from packer.sources.arrays.stacked import MOST_LISTED
from packer.sources.arrays.zarr_arrays import ZarrArrays
from packer.sources.arrays.zarr_layout import MOST_CHUNKS, layout_of
from packer.sources.container import Names

SIDES = (6, 10, 14, 3)
IMAGES = np.arange(np.prod(SIDES), dtype=np.uint8).reshape(SIDES)
LABELS = IMAGES[..., 0] % 3
NAMES = Names("images", "labels")
Facts = dict[str, Any]


@pytest.fixture
def group(tmp_path: Path) -> Path:
    pytest.importorskip("tensorstore")
    for name, array in (("images", IMAGES), ("labels", LABELS)):
        write_array(tmp_path / name, "zarr3", array, (2, 5, *array.shape[2:]))
    (tmp_path / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    return tmp_path


def change(group: Path, name: str, **facts: Any) -> None:
    path = group / name / "zarr.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **facts}))


def refused(group: Path) -> tuple[str, ...]:
    with pytest.raises(InputError) as error:
        ZarrArrays.at(group, NAMES)
    return error.value.problems


def grid(*sides: int) -> Facts:
    return {"name": "regular", "configuration": {"chunk_shape": sides}}


def shard(*inner: int) -> list[Facts]:
    numbers = [{"name": "bytes", "configuration": {"endian": "little"}}]
    facts = {"chunk_shape": inner, "codecs": numbers, "index_codecs": numbers, "index_location": "end"}
    return [{"name": "sharding_indexed", "configuration": facts}]


CLAIMS: dict[str, tuple[Facts, str]] = {
    "chunks of a pixel": (
        {"shape": (6, 1000, 1000, 3), "chunk_grid": grid(1, 1, 1, 1)},
        "--image images: has 3000000 chunks of (1, 1, 1, 1) for each row; 16384 are read at most; rechunk it",
    ),
    "one chunk too many": (
        {"shape": (6, 1, 1, MOST_CHUNKS + 1), "chunk_grid": grid(6, 1, 1, 1)},
        "--image images: has 16385 chunks of (6, 1, 1, 1) for each row; 16384 are read at most; rechunk it",
    ),
    "shards with chunks of a pixel": (
        {"shape": (6, 1000, 1000, 3), "chunk_grid": grid(1, 1000, 1000, 3), "codecs": shard(1, 1, 1, 1)},
        "--image images: has 3000000 chunks of (1, 1, 1, 1) for each row; 16384 are read at most; rechunk it",
    ),
    "a chunk of terabytes": (
        {"chunk_grid": grid(1 << 40, 10, 14, 3)},
        "--image images: has chunks of 461794883665920 bytes unpacked; 2 GiB are read at most; rechunk it",
    ),
    "a long description": (
        {"attributes": {"note": "x" * (1 << 20)}},
        "--image images: has a description of more than 1 MiB in zarr.json",
    ),
    "too many axes": ({"shape": [1] * 33, "chunk_grid": grid(*[1] * 33)}, "has no array described in zarr.json"),
    "a side below zero": ({"shape": (6, -10, 14, 3)}, "has no array described in zarr.json"),
    "a side that is not whole": ({"shape": (6, 10.5, 14, 3)}, "has no array described in zarr.json"),
}


@pytest.mark.parametrize("case", CLAIMS)
def test_an_array_that_claims_too_much_is_refused(group: Path, case: str) -> None:
    facts, message = CLAIMS[case]
    change(group, "images", **facts)
    assert message in refused(group)[0]


def test_shards_with_chunks_of_a_usual_size_are_read(group: Path) -> None:
    write_array(group / "shards", "zarr3", IMAGES, (2, 10, 14, 3), codecs=shard(1, 5, 14, 3))
    assert layout_of(group / "shards").inner == (1, 5, 14, 3)
    source = ZarrArrays.at(group, NAMES._replace(image="shards"))
    for number, ref in enumerate(source.rows()):
        assert np.array_equal(source.load(ref).data[0], IMAGES[number])


def test_as_many_chunks_as_a_row_may_have_are_read(group: Path) -> None:
    change(group, "images", shape=(6, 128, 128, 1), chunk_grid=grid(6, 1, 1, 1))
    assert len(list(layout_of(group / "images").names(0))) == MOST_CHUNKS


def test_a_listing_looks_at_no_chunks_and_ends(group: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Path] = []

    def counting(entries: Callable[[Path, int], list[Path]]) -> Callable[[Path, int], list[Path]]:
        def counted(folder: Path, most: int) -> list[Path]:
            looked.append(folder.relative_to(group))
            return entries(folder, most)

        return counted

    monkeypatch.setattr(zarr_arrays, "_entries", counting(zarr_arrays._entries))
    (group / "train").mkdir()
    (group / "train" / "loop").symlink_to(group / "train")
    source = ZarrArrays(group, NAMES)
    assert list(source.listing()) == ["images (6, 10, 14, 3)", "labels (6, 10, 14)"]
    assert looked == [Path(), Path("train"), Path("train/loop")]
    monkeypatch.setattr(zarr_arrays, "MOST_SEEN", 1)
    assert len(list(source.listing())) <= 1


def test_an_error_names_only_the_first_arrays(group: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ZarrArrays, "listing", lambda self: (f"array{number} (6,)" for number in count()))
    with pytest.raises(InputError) as error:
        ZarrArrays.at(group, Names("none", "labels"))
    first = str(error.value).partition("\n")[0]
    assert first.endswith(f"array{MOST_LISTED - 1} (6,); and others")


def test_only_a_chunk_that_is_absent_has_the_fill_value(group: Path) -> None:
    chunk = group / "images/c/0/1/0/0"
    chunk.unlink()
    assert not ZarrArrays.at(group, NAMES).load(RowRef("all", "0", ("images[0]", "labels[0]"))).data[0][5:].any()


IN_PLACE: dict[str, tuple[Callable[[Path], None], str]] = {
    "a folder": (Path.mkdir, "is not a regular file"),
    "a device": (lambda path: path.symlink_to("/dev/zero"), "is not a regular file"),
    "a pipe": (lambda path: os.mkfifo(path), "is not a regular file"),
    "a link to nothing": (lambda path: path.symlink_to("gone"), "is a link that leads nowhere"),
    "a link to itself": (lambda path: path.symlink_to(path.name), "cannot be opened"),
}


@pytest.mark.parametrize("driver", ["zarr", "zarr3", "n5"])
@pytest.mark.parametrize("case", IN_PLACE)
def test_another_thing_in_the_place_of_a_chunk_is_refused(tmp_path: Path, driver: str, case: str) -> None:
    """TensorStore gives the fill value for it, which is a class in a label."""
    pytest.importorskip("tensorstore")
    put, words = IN_PLACE[case]
    for name, array in (("images", IMAGES), ("labels", LABELS)):
        write_array(tmp_path / name, driver, array, (2, 5, *array.shape[2:]))
    chunk = tmp_path / "labels" / next(layout_of(tmp_path / "labels").names(2))
    chunk.unlink()
    put(chunk)
    source = ZarrArrays.at(tmp_path, NAMES)
    rows = [source.load(ref).bad for ref in source.rows()]
    assert [bad is None for bad in rows] == [True, True, False, False, True, True]
    assert f"its chunk {chunk.relative_to(tmp_path / 'labels')} {words}" in str(rows[2])


@pytest.mark.parametrize("above", ["a file", "a link to nothing"])
def test_the_folders_of_a_chunk_are_folders(group: Path, above: str) -> None:
    folder = group / "images/c/1"
    shutil.rmtree(folder)
    if above == "a file":
        folder.write_bytes(b"")
    else:
        folder.symlink_to("gone")
    source = ZarrArrays.at(group, NAMES)
    rows = [source.load(ref).bad for ref in source.rows()]
    assert [bad is None for bad in rows] == [True, True, False, False, True, True]


def test_rows_of_a_damaged_chunk_are_not_those_of_the_chunk_before() -> None:
    """The first row of a bad chunk was refused, and the others were rows of the last good chunk."""

    class HalfBad:
        dtype, shape = IMAGES.dtype, IMAGES.shape

        def rows(self, start: int, stop: int) -> NDArray[Any]:
            if start >= 2:
                raise BadPair("is damaged")
            return IMAGES[start:stop]

    kept = KeptRows(HalfBad(), 2)
    assert np.array_equal(kept.rows(1, 2), IMAGES[1:2])
    for row in (2, 3, 4, 5, 3):
        with pytest.raises(BadPair, match="is damaged"):
            kept.rows(row, row + 1)
