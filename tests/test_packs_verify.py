"""`packer verify` finds every damage, names it, and exits 4; reading damaged data never crashes."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import examples, good, run

from readers import DamagedError, open_dataset
from readers.contract.manifest import GENERATIONS, MANIFEST, SHARDS
from readers.contract.mapped import map_file
from readers.pack import Pack


@pytest.fixture
def copy(packed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(packed, tmp_path / "copy"))


def files(out: Path) -> list[Path]:
    parts = (MANIFEST, GENERATIONS, SHARDS)
    return sorted(path for path in out.rglob("*") if path.is_file() and path.relative_to(out).parts[0] in parts)


def flip(path: Path, index: int, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[index] ^= 1 << bit
    path.write_bytes(data)


def test_a_whole_pack_is_reported_as_whole(packed: Path) -> None:
    result = good("verify", packed)
    assert "whole; " in result.stdout
    assert result.stderr == ""


def test_a_flipped_bit_in_any_file_is_found(copy: Path) -> None:
    rng = random.Random(0)
    for path in files(copy):
        whole = path.read_bytes()
        flip(path, rng.randrange(len(whole)), rng.randrange(8))
        result = run("verify", "--quiet", copy)
        assert result.exit_code == 4, path
        assert path.stem.split(".")[0] in result.output, path
        path.write_bytes(whole)
    assert run("verify", "--quiet", copy).exit_code == 0


def test_a_missing_cut_or_longer_file_is_found(copy: Path) -> None:
    for path in files(copy):
        whole = path.read_bytes()
        path.write_bytes(whole[:-1])
        assert run("verify", "--quiet", copy).exit_code == 4, path
        path.write_bytes(whole + b"\0")
        assert run("verify", "--quiet", copy).exit_code == 4, path
        path.unlink()
        assert run("verify", "--quiet", copy).exit_code == (1 if path.name == MANIFEST else 4), path
        path.write_bytes(whole)


def test_the_damaged_sample_is_named(copy: Path) -> None:
    dataset = open_dataset(copy, split="val")
    victim, other = dataset.key(4), dataset.key(5)
    pack = Pack.open(copy)
    shard, row = pack.table.locate(23 + 4)
    column = pack.shard(shard)._columns["image"]
    start = int(column.offsets(np.array([row]))[0])
    flip(column.path, start + 100, 3)
    result = run("verify", "--quiet", copy)
    assert result.exit_code == 4
    assert f"the field 'image' of the row '{victim}' is damaged" in result.stdout
    assert other not in result.stdout


def test_swapped_shards_are_found(copy: Path) -> None:
    first, second = sorted(path for path in copy.glob("shards/train-*") if path.suffix != ".json")[:2]
    data = first.read_bytes(), second.read_bytes()
    first.write_bytes(data[1])
    second.write_bytes(data[0])
    assert run("verify", "--quiet", copy).exit_code == 4


def test_reading_a_cut_shard_is_an_error_of_ours_with_the_file(copy: Path) -> None:
    for path in copy.glob("shards/*"):
        if path.suffix != ".json" and ".key." not in path.name:
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    dataset = open_dataset(copy, split="train")
    with pytest.raises(DamagedError, match="shards/train-"):
        dataset[0]


@pytest.mark.parametrize("left", [0, 9, 100, -1])
def test_keys_that_were_cut_are_an_error_when_they_are_asked_for(copy: Path, left: int) -> None:
    cut = list(copy.glob("shards/*.key.npy"))
    for path in cut:
        path.write_bytes(path.read_bytes()[:left])
    dataset = open_dataset(copy, split="train")
    image, _ = dataset[0]
    assert image.any()
    if cut:
        with pytest.raises(DamagedError, match=r"shards/train-.*key\.npy"):
            dataset.key(0)
    else:
        assert dataset.key(0)


def test_reading_never_crashes_on_any_header_damage(copy: Path) -> None:
    """Damage in the first kilobyte of a shard is an error of ours, or harmless; never a crash or a hang."""
    rng = random.Random(1)
    path = next(path for path in copy.glob("shards/train-*") if path.suffix != ".json" and ".key." not in path.name)
    whole = path.read_bytes()
    refused = 0
    for _ in range(examples(50)):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 4])):
            data[rng.randrange(min(1024, len(data)))] = rng.randrange(256)
        path.write_bytes(data)
        dataset = open_dataset(copy, split="train")
        try:
            for row in range(len(dataset)):
                dataset[row]
                dataset.key(row)
        except DamagedError:
            refused += 1
    assert refused > 0


def test_json_lists_the_damage(copy: Path) -> None:
    path = files(copy)[-1]
    path.unlink()
    result = run("verify", "--json", copy)
    assert result.exit_code == 4
    assert str(path) in result.stdout


def test_an_empty_file_maps_to_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    mapped = map_file(tmp_path / "empty")
    assert mapped is not None
    assert len(mapped) == 0
