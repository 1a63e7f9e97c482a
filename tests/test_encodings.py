"""Fields that are stored encoded: smaller, and the same rows from every reader. Damaged frames are refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import zstandard
from conftest import RawFolder, pack, run
from numpy.typing import NDArray

from packer import build_pack, verify_pack
from readers import DamagedError, open_dataset
from readers.contract.classes import ClassTable, SegClass
from readers.contract.fields import ZSTD, classes_field
from readers.contract.kinds import INDEX
from readers.contract.manifest import Manifest
from readers.formats.unpack import unpack

ENCODE = "--encode", "label=zstd"
LABEL_ZSTD = replace(
    classes_field("label", INDEX, ClassTable((SegClass("road"), SegClass("sky"))), (4, 8)), encoding=ZSTD
)


def is_equal(one: Path, other: Path) -> bool:
    """Return whether the rows of two packs are the same."""
    ours, theirs = open_dataset(one, "train"), open_dataset(other, "train")
    return len(ours) == len(theirs) and all(
        ours.key(row) == theirs.key(row) and all(map(torch.equal, ours[row], theirs[row])) for row in range(len(ours))
    )


@pytest.fixture
def both(storage: str, raw_folder: RawFolder, tmp_path: Path) -> tuple[Path, Path]:
    """The same folder as a raw pack, and with its labels encoded."""
    options = "--format", storage, "--labels", "index"
    raw = pack(raw_folder.path, tmp_path / "raw", *options)
    return raw, pack(raw_folder.path, tmp_path / "encoded", *options, *ENCODE)


def test_rows_batches_and_crops_are_those_of_a_raw_pack(both: tuple[Path, Path]) -> None:
    for label in ("index", "onehot"):
        raw, encoded = (open_dataset(out, "train", label=label) for out in both)
        for one, other in zip(raw, encoded, strict=True):
            assert all(map(torch.equal, one, other))
        for crop in (None, (7, 9)):
            batches = (each.loader(batch_size=3, crop=crop, flip=True, seed=5) for each in (raw, encoded))
            for one, other in zip(*batches, strict=True):
                assert all(map(torch.equal, one, other))


def test_an_encoded_pack_is_smaller_whole_and_says_how_it_is_stored(both: tuple[Path, Path]) -> None:
    raw, encoded = both
    assert verify_pack(encoded, deep=True) == []
    manifest = Manifest.load(encoded)
    assert [field.encoding for field in manifest.fields] == ["raw", "zstd"]
    assert manifest.bytes <= Manifest.load(raw).bytes  # LMDB stores whole pages, and the rows are small
    version = ".".join(map(str, zstandard.ZSTD_VERSION))
    assert f"zstd {version} level 1" in manifest.recipe["tools"]
    assert "zstd" in run("info", encoded).stdout
    assert is_equal(raw, encoded)


def test_every_flipped_bit_of_a_frame_is_found_and_named(both: tuple[Path, Path]) -> None:
    _, encoded = both
    dataset = open_dataset(encoded, "val", fields=("label",))
    shard = dataset._pack.shard(dataset._pack.table.locate(dataset._rows.start)[0])
    path, start, stop = shard.position("label", 0)
    whole = path.read_bytes()
    for bit in range(8 * start, 8 * stop, 8 * max(1, (stop - start) // 12) + 1):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        named = [(each.row, each.field) for each in verify_pack(encoded) if each.row]
        assert named == [(dataset.key(0), "label")]
    path.write_bytes(whole[:start] + bytes(stop - start) + whole[stop:])
    with pytest.raises(DamagedError, match=f"the row '{dataset.key(0)}': its 'label' is not stored as zstd of"):
        open_dataset(encoded, "val")[0]
    path.write_bytes(whole)


def frame(data: bytes, sized: bool = True) -> bytes:
    return zstandard.ZstdCompressor(write_content_size=sized).compress(data)


def trained() -> bytes:
    """Return a frame that needs a dictionary."""
    samples = zstandard.train_dictionary(1024, [bytes([each % 7, each % 11]) * 30 for each in range(500)])
    return zstandard.ZstdCompressor(dict_data=samples).compress(bytes(32))


FRAMES: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: b"",
    "zeros": lambda: bytes(40),
    "too short": lambda: frame(bytes(31)),
    "too long": lambda: frame(bytes(33)),
    "a bomb": lambda: frame(bytes(1 << 30)),
    "cut": lambda: frame(np.random.default_rng(1).bytes(32))[:-1],
    "without its size": lambda: frame(bytes(32), sized=False),
    "followed by another": lambda: frame(bytes(32)) + frame(b"x"),
    "followed by bytes": lambda: frame(bytes(32)) + b"x",
    "with a dictionary": trained,
    "a frame to skip": lambda: b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + bytes(4) + frame(bytes(32)),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_that_are_not_a_row_are_refused(kind: str) -> None:
    out: NDArray[np.uint8] = np.full((4, 8), 7, np.uint8)
    with pytest.raises(DamagedError, match="its 'label' is not stored as zstd of 32 bytes"):
        unpack(LABEL_ZSTD, np.frombuffer(FRAMES[kind](), np.uint8), out)
    unpack(LABEL_ZSTD, np.frombuffer(frame(bytes(32)), np.uint8), out)
    assert not out.any()


def test_a_pack_made_of_an_encoded_pack_keeps_its_encoding_unless_told(both: tuple[Path, Path], tmp_path: Path) -> None:
    raw, encoded = both
    kept, plain, smaller = (tmp_path / name for name in ("kept", "plain", "smaller"))
    build_pack(encoded, kept, format="npy")
    build_pack(encoded, plain, format="npy", encode=["label=raw"])
    build_pack(raw, smaller, format="npy", encode=["label=zstd", "image=zstd"])
    found = [[field.encoding for field in Manifest.load(each).fields] for each in (kept, plain, smaller)]
    assert found == [["raw", "zstd"], ["raw", "raw"], ["zstd", "zstd"]]
    for each in (kept, plain, smaller):
        assert is_equal(raw, each)


def test_another_release_of_zstandard_is_another_recipe(
    raw_folder: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = json.loads(run("build", "--dry-run", "--json", *ENCODE, raw_folder.path, tmp_path / "out").stdout)
    monkeypatch.setattr(zstandard, "ZSTD_VERSION", (9, 9, 9))
    other = json.loads(run("build", "--dry-run", "--json", *ENCODE, raw_folder.path, tmp_path / "out").stdout)
    assert plan != other


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("label", "'label': expected a field and raw or zstd, such as label=zstd"),
        ("label=zst", "expected a field and raw or zstd, such as label=zstd; did you mean zstd?"),
        ("depth=zstd", "--encode depth: there is no field 'depth'; the fields are image, label"),
    ],
)
def test_wrong_encodings_are_refused(raw_folder: RawFolder, tmp_path: Path, value: str, message: str) -> None:
    result = run("build", "--encode", value, raw_folder.path, tmp_path / "out")
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert not (tmp_path / "out").exists()
