"""Arrays of Zarr that claim too much are refused in words, before a chunk is opened; a listing is bounded."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stored_scenes import write_array

from packer.errors import InputError
from packer.sources import zarr_arrays
from packer.sources.container import Names
from packer.sources.stacked import MOST_LISTED
from packer.sources.zarr_arrays import ZarrArrays
from packer.sources.zarr_layout import MOST_CHUNKS, layout_of

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
