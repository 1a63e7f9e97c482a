"""`packer build --from PACK OUT`: what is not given stays as it is in the pack, and wrong usage says what to do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from conftest import RawFolder, errors_of, good, json_of, make_raw, make_varied_raw, pack, run
from test_sources_pack import rows_of

from readers.contract.manifest import Manifest

pytestmark = pytest.mark.usefixtures("in_process")


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> RawFolder:
    return make_raw(tmp_path_factory.mktemp("raw") / "city", {"train": 9, "val": 4})


@pytest.fixture(scope="module")
def source(raw: RawFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("source") / "pack"
    return pack(raw.path, out, "--format", "lmdb", "--labels", "index", "--image-dtype", "float16")


def convert(source: Path, out: Path, *options: object) -> Path:
    good("build", "--quiet", "--workers", "1", *options, "--from", source, out)
    return out


def test_what_is_not_given_is_that_of_the_pack(source: Path, tmp_path: Path) -> None:
    out = convert(source, tmp_path / "out")
    before, after = Manifest.load(source), Manifest.load(out)
    assert (after.storage, after.fields, after.classes) == (before.storage, before.fields, before.classes)
    assert rows_of(out) == rows_of(source)


def test_format_size_and_split_can_change(raw: RawFolder, source: Path, tmp_path: Path) -> None:
    out = convert(source, tmp_path / "out", "--format", "arrow", "--only", "val", "--image-dtype", "uint8")
    expected = pack(raw.path, tmp_path / "expected", "--only", "val", "--labels", "index")
    assert [split.name for split in Manifest.load(out).splits] == ["val"]
    assert Manifest.load(out).storage == "arrow"
    assert rows_of(out) == rows_of(expected)


def test_native_sizes_stay_or_become_one(tmp_path: Path) -> None:
    varied = make_varied_raw(tmp_path / "raw", {"train": [(24, 36), (17, 5)], "val": [(9, 11)]})
    native = pack(varied.path, tmp_path / "native", "--size", "native")
    assert rows_of(convert(native, tmp_path / "same")) == rows_of(native)
    expected = pack(varied.path, tmp_path / "expected", "--size", "8x8", "--fit", "letterbox")
    assert rows_of(convert(native, tmp_path / "one", "--size", "8x8", "--fit", "letterbox")) == rows_of(expected)


def test_a_folder_may_be_named_in_the_same_way(raw: RawFolder, tmp_path: Path) -> None:
    assert rows_of(convert(raw.path, tmp_path / "out")) == rows_of(pack(raw.path, tmp_path / "expected"))


def test_a_pack_without_its_hidden_mark_and_a_folder_with_a_manifest_are_known_by_content(
    raw: RawFolder, source: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns(".*"))
    assert rows_of(convert(copy, tmp_path / "out")) == rows_of(source)
    folder = tmp_path / "folder"
    shutil.copytree(raw.path, folder)
    (folder / "manifest.json").write_text('{"name": "a data set"}')
    assert len(rows_of(convert(folder, tmp_path / "of_folder"))) == 13


def test_tiles_are_converted_but_keep_their_size(raw: RawFolder, tmp_path: Path) -> None:
    tiles = pack(raw.path, tmp_path / "tiles", "--size", "16x16", "--fit", "tile")
    assert rows_of(convert(tiles, tmp_path / "out", "--format", "hdf5")) == rows_of(tiles)
    errors = errors_of(2, "build", "--quiet", "--from", tiles, tmp_path / "small", "--size", "8x8")
    assert "the rows of this pack are tiles, whose keys name their positions" in errors
    assert json_of("diff", "--json", tiles, tmp_path / "out")["rebuilt_shards"] == 0


def test_diff_and_repair_know_the_pack_that_rows_came_from(raw: RawFolder, tmp_path: Path) -> None:
    shutil.copytree(raw.path, tmp_path / "raw")
    source = pack(tmp_path / "raw", tmp_path / "source")
    out = convert(source, tmp_path / "out", "--size", "6x9")
    rows = rows_of(out)
    assert run("diff", source, out).exit_code == 0
    shard = next(out.glob("shards/*.image.npy"))
    shard.write_bytes(shard.read_bytes()[:-1] + b"!")
    good("repair", "--quiet", out)
    assert rows_of(out) == rows
    (tmp_path / "raw/val/images/street_001.png").unlink()
    (tmp_path / "raw/val/masks/street_001.png").unlink()
    pack(tmp_path / "raw", source)
    result = run("diff", source, out)
    assert result.exit_code == 1
    assert "removed   val/street_001\n" in result.stdout
    source.rename(tmp_path / "moved")
    shard.write_bytes(shard.read_bytes()[:-1] + b"!")
    assert "if it was moved, name it where it is now" in run("repair", "--quiet", out).stderr


def test_a_damaged_pack_is_named(source: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(source, copy)
    next(copy.glob("shards/*.receipt.json")).unlink()
    assert "receipt.json: is missing" in errors_of(4, "build", "--from", copy, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--from", "{source}", "{source}"), "is the pack that the rows come from; name another folder"),
        (("--from", "{source}", "{source}/part"), "one is inside the other; name another"),
        (("{source}", "{out}"), "is a pack; to pack its rows again: packer build --from"),
        (("--from", "{source}", "{raw}", "{out}"), "stands for RAW, so name OUT alone"),
        (("--from", "{out}", "{source}"), "there is no such pack, container or folder"),
        (
            ("--from", "{source}/manifest.json", "{out}"),
            "is a file of an unknown kind; expected a pack, a container of",
        ),
        (("--from", "{source}", "{out}", "--classes", "12"), "--classes: says how files are read, but"),
        (("--from", "{source}", "{out}", "--ignore", "0"), "--ignore: says how files are read, but"),
        (("--from", "{source}", "{out}", "--image-range", "0,9"), "--image-range: says how files are read, but"),
        (
            ("--from", "{source}", "{out}", "--split", "80/20"),
            "--split: there are splits already, such as",
        ),
        (("--from", "{source}", "{out}", "--only", "test"), "--only test: there is no such split, only train, val"),
        (("{raw}", "{out}", "--only", "test"), "--only test: there is no such split, only train, val"),
        (("--from", "{source}"), "Missing argument 'OUT'"),
    ],
)
def test_wrong_usage_says_what_to_do(
    raw: RawFolder, source: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    names = {"source": source, "raw": raw.path, "out": tmp_path / "out"}
    result = run("build", "--quiet", *(argument.format(**names) for argument in arguments))
    assert result.exit_code in (1, 2)
    assert message in result.stderr
    assert not (tmp_path / "out").exists()


def test_problems_of_other_splits_do_not_stop_a_build_of_one(tmp_path: Path) -> None:
    """A file without a partner, and a key that has two labels."""
    raw = make_raw(tmp_path / "raw", {"train": 3, "val": 3}).path
    (raw / "val/masks/street_001.png").unlink()
    shutil.copy(raw / "val/masks/street_002.png", raw / "val/masks/street_002.bmp")
    assert run("build", "--quiet", raw, tmp_path / "all").exit_code == 1
    for damaged in ("train", "val"):
        result = run("build", "--quiet", "--workers", "1", raw, tmp_path / damaged, "--only", damaged)
        assert result.exit_code == (damaged == "val"), result.stderr
    assert "val/images/street_001.png: has no label" in result.stderr
    assert "2 labels for the key 'street_002'" in result.stderr
