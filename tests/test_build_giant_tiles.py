"""Tiles of pictures too large for memory: the lines that they touch are decoded, and the bytes are the same."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from packer import build_pack
from packer.decoding.strips.strip_file import StripFile
from packer.decoding.strips.tiff import TiffLines
from packer.errors import InputError, RejectedError
from packer.sources.files.folder import FolderSource
from readers import open_dataset
from readers.contract import giant

pytestmark = pytest.mark.usefixtures("in_process")
RNG = np.random.default_rng(17)
HEIGHT, WIDTH = 150, 130
SAVED: dict[str, dict[str, Any]] = {
    "png": {"format": "PNG"},
    "tif": {"format": "TIFF", "compression": "tiff_lzw"},
    "tiff": {"format": "TIFF"},
    "bmp": {"format": "BMP"},
}


def write(path: Path, pixels: NDArray[np.uint8], **options: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, **options)
    path.write_bytes(buffer.getvalue())


def write_pairs(raw: Path, options: dict[str, Any], suffix: str = "png", count: int = 3) -> None:
    for number in range(count):
        colours = RNG.integers(0, 256, (HEIGHT + 7 * number, WIDTH, 3), np.uint8)
        write(raw / f"images/s{number}.{suffix}", colours, **options)
        write(raw / f"labels/s{number}.png", RNG.integers(0, 3, colours.shape[:2], np.uint8), format="PNG")


def build(raw: Path, out: Path, **options: Any) -> list[Path]:
    build_pack(raw, out, **{"classes": "3", "labels": "index", "fit": "tile", "size": (32, 48), **options})
    return sorted((out / "shards").iterdir())


@pytest.mark.parametrize("kind", SAVED)
@pytest.mark.parametrize("options", [{}, {"overlap": 9}, {"edge": "shift"}, {"encode": ["label=zstd"]}], ids=str)
def test_the_shards_are_the_same(
    kind: str, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pairs(tmp_path / "raw", SAVED[kind], kind)
    options = {"shard_size": "48KiB", **options}
    at_once = build(tmp_path / "raw", tmp_path / "at_once", **options)
    monkeypatch.setattr(giant, "GIANT", 0)
    in_strips = build(tmp_path / "raw", tmp_path / "in_strips", **options)
    assert len(at_once) > 4
    assert [path.name for path in at_once] == [path.name for path in in_strips]
    for ours, theirs in zip(at_once, in_strips, strict=True):
        assert ours.read_bytes() == theirs.read_bytes()


def test_only_the_lines_of_a_shard_are_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each shard decoded the whole picture again."""
    monkeypatch.setattr(giant, "GIANT", 0)
    write_pairs(tmp_path / "raw", SAVED["tif"], "tif", count=1)
    decoded: list[int] = []
    lines = TiffLines.lines

    def counted(reader: TiffLines, top: int, bottom: int) -> Any:
        decoded.append(bottom - top)
        return lines(reader, top, bottom)

    monkeypatch.setattr(TiffLines, "lines", counted)
    build(tmp_path / "raw", tmp_path / "out", shard_size="48KiB")
    shards = len(list((tmp_path / "out/shards").glob("*.json")))
    assert shards > 1
    assert HEIGHT <= sum(decoded) <= HEIGHT + 32 * shards


@pytest.mark.parametrize("kind", SAVED)
def test_lines_may_be_left_out(kind: str, tmp_path: Path) -> None:
    pixels = RNG.integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
    write(tmp_path / f"a.{kind}", pixels, **SAVED[kind])
    for parts in ([(0, 3), (70, 80), (149, 150)], [(99, 100)], [(10, 90), (90, 120)], [(1, 2), (3, 150)]):
        file = StripFile(tmp_path / f"a.{kind}")
        for top, bottom in parts:
            np.testing.assert_array_equal(file.lines(top, bottom).stored.numbers, pixels[top:bottom])
        file.close()


def test_damage_and_other_sizes_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(giant, "GIANT", 0)
    write_pairs(tmp_path / "raw", SAVED["png"])
    whole = (tmp_path / "raw/images/s1.png").read_bytes()
    (tmp_path / "raw/images/s1.png").write_bytes(whole[: len(whole) // 2] + bytes(9) + whole[len(whole) // 2 + 9 :])
    build(tmp_path / "raw", tmp_path / "out", on_bad="skip", max_bad=1000)
    rows = open_dataset(tmp_path / "out")
    assert {rows.key(row).partition("@")[0] for row in range(len(rows))} == {"s0", "s2"}
    write(tmp_path / "raw/labels/s2.png", np.zeros((HEIGHT, WIDTH), np.uint8), format="PNG")
    with pytest.raises(InputError, match=r"s2\.png: is 164x130, its label labels/s2\.png is 150x130"):
        build(tmp_path / "raw", tmp_path / "out")


def test_an_unknown_number_is_at_its_row_of_the_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(giant, "GIANT", 0)
    write_pairs(tmp_path / "raw", SAVED["png"], count=1)
    label = np.zeros((HEIGHT, WIDTH), np.uint8)
    label[101, 5] = 77
    write(tmp_path / "raw/labels/s0.png", label, format="PNG")
    with pytest.raises(RejectedError) as caught:
        build(tmp_path / "raw", tmp_path / "out")
    assert "77" in str(caught.value)
    assert "rows are counted from row 96 of the picture" in str(caught.value)


def test_a_file_that_changes_while_it_is_read_is_not_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(giant, "GIANT", 0)
    write_pairs(tmp_path / "raw", SAVED["tif"], "tif", count=2)
    lines = TiffLines.lines

    def changed(reader: TiffLines, top: int, bottom: int) -> Any:
        with (tmp_path / "raw/images/s1.tif").open("ab") as file:
            file.write(b"\0")
        return lines(reader, top, bottom)

    monkeypatch.setattr(TiffLines, "lines", changed)
    with pytest.raises(Exception, match="changed while it was read"):
        build(tmp_path / "raw", tmp_path / "out")


@pytest.mark.parametrize("options", [{}, {"overlap": 9}], ids=str)
def test_every_kind_of_field_is_cut_the_same(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A class may have a file of its own in some rows only, and bands of a picture have several sizes."""
    for number in range(2):
        key = f"s{number}"
        for band, factor in (("B02", 1), ("B03", 1), ("B11", 2)):
            sides = (HEIGHT // factor, WIDTH // factor)
            write(tmp_path / f"raw/bands/{key}_{band}.png", RNG.integers(0, 256, sides, np.uint8), format="PNG")
        for name in ("labels", "ids", "values", *(("parts/wheel",) if number else ()), "parts/door"):
            most = 2 if "parts" in name else 3
            numbers = RNG.integers(0, most, (HEIGHT, WIDTH), np.uint8) * np.uint8(255 if "parts" in name else 1)
            write(tmp_path / f"raw/{name}/{key}.png", numbers, format="PNG")
    fields = [
        {"name": "ids", "kind": "ids", "from": "ids/{key}"},
        {"name": "values", "kind": "values", "from": "values/{key}"},
        {"name": "parts", "kind": "multilabel", "from": "parts/{class}/{key}", "classes": ["wheel", "door"]},
    ]
    options = {"image": "bands/{key}_{channel}", "label": "labels/{key}", "fields": fields, **options}
    at_once = build(tmp_path / "raw", tmp_path / "at_once", shard_size="64KiB", **options)
    monkeypatch.setattr(giant, "GIANT", 0)
    in_strips = build(tmp_path / "raw", tmp_path / "in_strips", shard_size="64KiB", **options)
    assert [path.name for path in at_once] == [path.name for path in in_strips]
    for ours, theirs in zip(at_once, in_strips, strict=True):
        assert ours.read_bytes() == theirs.read_bytes()


@pytest.mark.parametrize("age", [0, 10**18], ids=["old", "young"])
def test_a_scene_is_digested_once_unless_it_is_young(age: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(giant, "GIANT", 0)
    monkeypatch.setattr("packer.sources.file_states.MIN_FILE_AGE", age)
    write_pairs(tmp_path / "raw", SAVED["tif"], "tif", count=1)
    digested: list[str] = []
    digest_of = FolderSource.digest_of

    def counted(source: FolderSource, path: str) -> str:
        digested.append(path)
        return digest_of(source, path)

    monkeypatch.setattr(FolderSource, "digest_of", counted)
    build(tmp_path / "raw", tmp_path / "out", shard_size="16KiB")
    shards = len(list((tmp_path / "out/shards").glob("*.json")))
    assert shards > 3
    assert digested.count("images/s0.tif") == (shards if age else 1)
