"""`show`, `sheet`, `index`, `repr` and HTML of a data set, and the commands `packer sheet` and `packer show`."""

from __future__ import annotations

import os
import pty
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from any_pack import write_any_pack
from conftest import REPO, RawFolder, errors_of, good, pack, python, run, run_script, without_workers
from numpy.typing import NDArray
from PIL import Image

from packer import Rows, build_pack
from readers import RequestError, open_dataset
from readers.formats.shard import Shard
from readers.pack import Pack

HOSTILE = (
    "<script>alert(1)</script>",
    "../../etc/passwd",
    "\u202egnp.a",
    "k" * 500,
    "'\"&",
    "猫/犬",
    "x@000000+000000of3x4",
)
"""Keys that a source may have; control characters are refused when a pack is built."""
NAMES = ("<b>&\"'", "\u202egnp", "class", "n" * 500)


def load(key: str) -> dict[str, NDArray[np.uint8]]:
    index = np.zeros((20, 30), np.uint8)
    index[4:9], index[12:] = 1, 255
    return {"image": np.full((20, 30, 3), 90, np.uint8), "label": index}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("hostile") / "a<i>b"
    with without_workers():
        build_pack(
            Rows([("train", key) for key in HOSTILE], load), out, classes=list(NAMES), ignore=[255], labels="index"
        )
    return out


def test_a_row_is_shown_at_its_size_and_opacity_goes_from_picture_to_label(packed: Path, raw_folder: RawFolder) -> None:
    train = open_dataset(packed, "train")
    image = raw_folder.images["train", train.key(3)]
    shown = train.show(3, opacity=0)
    assert isinstance(shown, Image.Image)
    assert np.array_equal(np.asarray(shown), image)
    index = open_dataset(packed, "train", label="index")[3].label.numpy()
    assert np.array_equal(np.asarray(train.show(3, opacity=1)), train.classes.palette.lookup[index])
    assert np.array_equal(np.asarray(train.show(3, "image")), image)
    assert max(train.show(-1, size=17).size) <= 17
    assert not np.array_equal(np.asarray(train.show(3, classes=["car"])), np.asarray(train.show(3)))
    assert np.array_equal(np.asarray(train.show(3, classes=["car"])), np.asarray(train.show(3, classes=[2])))


def test_one_hot_and_index_are_shown_alike_in_all_formats(packed: Path, packed_index: Path) -> None:
    train, index = open_dataset(packed, "train"), open_dataset(packed_index, "train")
    assert np.array_equal(np.asarray(train.show(2)), np.asarray(index.show(2)))
    ours, theirs = np.asarray(train.sheet(5, seed=2)), np.asarray(index.sheet(5, seed=2))
    assert np.array_equal(ours[80:], theirs[80:]), "below the title"
    assert np.array_equal(np.asarray(train.sheet(rows=[1])), np.asarray(train.sheet(rows=[1])))


def test_what_cannot_be_shown_is_refused_in_words(hostile: Path) -> None:
    train = open_dataset(hostile)
    wrong: dict[str, Callable[[], Any]] = {
        "there is no field 'depth', only 'image', 'label'": lambda: train.show(0, "depth"),
        "opacity=2: expected a number from 0 to 1": lambda: train.show(0, opacity=2),
        "'car' is neither the name nor the number of a class": lambda: train.show(0, classes=["car"]),
        "expected a list of names or numbers": lambda: train.show(0, classes="class"),
        "n=601: a sheet shows 1 to 600 rows": lambda: train.sheet(601),
        "a sheet shows 1 to 600 rows, not 0": lambda: train.sheet(rows=[]),
        "size=0: expected the pixels of the longest side": lambda: train.show(0, size=0),
    }
    for message, call in wrong.items():
        with pytest.raises(RequestError, match=re.escape(message)):
            call()


def test_every_key_is_found_by_a_few_shards(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train = open_dataset(packed, "train")
    assert [train.index(train.key(row)) for row in range(len(train))] == list(range(len(train)))
    opened, find = [], Pack.shard

    def shard(pack: Pack, number: int) -> Shard:
        opened.append(number)
        return find(pack, number)

    monkeypatch.setattr(Pack, "shard", shard)
    train.index(train.key(11))
    assert len(opened) <= 8
    with pytest.raises(KeyError, match="there is no row with the key 'street_0110'; near it are 'street_01") as error:
        train.index("street_0110")
    assert isinstance(error.value, RequestError)
    with pytest.raises(KeyError, match="'street_003' is in the splits train, val"):
        open_dataset(packed, "all").index("street_003")


def test_keys_of_parts_and_tiles_are_found(tmp_path: Path, raw_folder: RawFolder, hostile: Path) -> None:
    """Parts are sorted each by itself, tiles by picture and position: `a-b@…` comes after `a@…`, unlike the texts."""
    write_any_pack(tmp_path / "parts", "npy")
    tiles = pack(raw_folder.path, tmp_path / "tiles", "--size", "8x8", "--fit", "tile", "--shard-size", "8KB")
    for out, split in ((tmp_path / "parts", "train"), (tiles, "val"), (hostile, "train")):
        dataset = open_dataset(out, split)
        assert [dataset.index(dataset.key(row)) for row in range(len(dataset))] == list(range(len(dataset)))
        for unknown in ("", "a", "zzz", "street_001@000008", "\ud800", "k" * 499):
            with pytest.raises(KeyError):
                dataset.index(unknown)


def test_tiles_of_pictures_whose_names_sort_differently_are_found(tmp_path: Path) -> None:
    keys = ["a", "a-b", "a/b", "aa", "B"]
    with without_workers():
        rows = Rows(keys, load, sizes=(20, 30))
        build_pack(rows, tmp_path / "out", classes=2, ignore=[255], size=(7, 7), fit="tile", labels="index")
    dataset = open_dataset(tmp_path / "out")
    assert len(dataset) == 5 * 15
    assert [dataset.index(dataset.key(row)) for row in range(len(dataset))] == list(range(len(dataset)))


def test_a_pack_that_is_read_through_a_cache_looks_the_same(hostile: Path, tmp_path: Path) -> None:
    near, far = open_dataset(hostile), open_dataset(hostile, cache=tmp_path, cache_bytes="100MB")
    assert np.array_equal(np.asarray(near.sheet(3)), np.asarray(far.sheet(3))), "also the title"
    assert far.index(HOSTILE[0]) == near.index(HOSTILE[0])
    assert repr(far).splitlines()[1] == f"    root     {hostile}, read from {far.root}"


@pytest.mark.parametrize("split", ["train", "val", "all"])
def test_repr_counts_rows_without_a_label(tmp_path: Path, split: str) -> None:
    write_any_pack(tmp_path / "out", "npy")
    lines = repr(open_dataset(tmp_path / "out", split)).splitlines()
    rows = {"train": "18 rows, 6 of them without a label", "val": "6 rows", "all": "24 rows, 6 of them without a label"}
    assert lines[2] == f"    split    {split}, {rows[split]}"
    if split != "all":
        assert "without a label" not in repr(open_dataset(tmp_path / "out", split, labelled=True))


def test_repr_and_html_are_short_and_harmless(hostile: Path) -> None:
    train = open_dataset(hostile)
    text = repr(train)
    assert len(text.splitlines()) <= 10
    assert "\u202e" not in text
    assert max(map(len, text.splitlines())) < 300
    html = train._repr_html_()
    seen = Tags(html)
    assert {*seen.names} == {"div", "b", "table", "tr", "th", "td", "img"}
    assert seen.sources.count("data:image/png;base64,") == min(4, len(train))
    assert len(html) < 100_000
    assert "\u202e" not in html


class Tags(HTMLParser):
    """The names of all tags, and where pictures come from."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.sources = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        assert {name for name, _ in attrs} <= {"src", "alt", "title", "width", "height", "style"}
        self.sources += (dict(attrs).get("src") or "")[:22]


def test_the_html_of_a_damaged_pack_is_its_table_and_the_damage(raw_folder: RawFolder, tmp_path: Path) -> None:
    train = open_dataset(pack(raw_folder.path, tmp_path / "out"), "train")
    for path in (tmp_path / "out/shards").glob("train*.npy"):
        path.unlink()
    html = train._repr_html_()
    assert "23 rows" in html
    assert "is missing" in html
    assert {*Tags(html).names} == {"div", "b", "table", "tr", "th", "td"}
    assert "23 rows" in repr(train)


def test_the_room_needs_numpy_only_and_pillow_for_texts_and_files(hostile: Path) -> None:
    code = f"""
import sys
from pathlib import Path
import readers.pictures.draw, readers.pictures.sheet, readers.pictures.blocks
from readers.formats.shard import Shard
from readers.pack import Pack
from readers.row_pictures import RowPictures, Style
pictures = RowPictures(Pack.open(Path({str(hostile)!r})), Style())
pictures.one(0); pictures.classes(0)
assert not {{"PIL", "torch", "cv2", "packer"}} & {{*sys.modules}}
"""
    python("-c", code, env={**os.environ, "PYTHONPATH": str(REPO)})


@pytest.mark.parametrize("name", ["s.png", "s.jpg", "s.webp"])
def test_packer_sheet_writes_a_picture(hostile: Path, tmp_path: Path, name: str) -> None:
    result = good("sheet", hostile, "-n", 4, "-o", tmp_path / name)
    with Image.open(tmp_path / name) as image:
        assert image.size[0] > 400
        assert f"{name}: 4 rows, {image.width}x{image.height} pixels" in result.stdout


def test_packer_sheet_takes_keys_and_options_and_says_what_is_wrong(
    hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    style = (
        "--opacity",
        0.7,
        "--outlines",
        "--class",
        "class",
        "--class",
        0,
        "--window",
        0,
        200,
        "--colour-blind",
        "--field",
        "label",
        "--split",
        "train",
        "--seed",
        3,
    )
    keys = [word for key in HOSTILE for word in ("--key", key)]
    result = run("sheet", hostile, *keys, *style)
    assert f"sheet.png: {len(HOSTILE)} rows" in result.stdout, result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["sheet.png"]
    wrong = {
        ("--key", "street"): "there is no row with the key 'street'",
        ("-o", "sheet.gif"): "expected a name that ends with .png",
        ("--split", "test"): "there is no split 'test'",
        ("--field", "depth"): "there is no field 'depth'",
        ("--class", "car"): "'car' is neither the name nor the number of a class",
        ("--class", "class", "--field", "image"): "nothing with classes is laid over the picture",
        ("-n", "601"): "601 is not in the range",
        ("-o", "none/sheet.png"): "there is no folder none",
    }
    for options, message in wrong.items():
        assert message in errors_of(2, "sheet", hostile, *options)
    assert run("sheet", tmp_path).exit_code == 1


@pytest.mark.parametrize("colours", ["auto", "none", "256", "24bit"])
@pytest.mark.parametrize("key", HOSTILE)
def test_packer_show_draws_a_row_and_no_key_or_name_sends_commands(hostile: Path, key: str, colours: str) -> None:
    result = good("show", hostile, key, "--colours", colours)
    codes = re.findall("\x1b[^m]*m", result.stdout)
    assert all(re.fullmatch("\x1b\\[(0|[34]8;(2;\\d+;\\d+;\\d+|5;\\d+))m", code) for code in codes)
    assert bool(codes) == (colours in ("256", "24bit"))
    assert not re.search("[\x00-\x09\x0b-\x1a\x1c-\x1f\x7f-\x9f\u202e]", result.stdout)
    assert "ignored" in result.stdout
    assert "40.0 %" in result.stdout


def test_packer_show_asks_for_the_split_and_names_unknown_keys(packed: Path) -> None:
    assert "is in the splits train, val" in errors_of(2, "show", packed, "street_003")
    assert "val, 24x36" in run("show", packed, "street_003", "--split", "val").stdout
    assert run("show", packed, "street").exit_code == 2


def test_the_snippets_of_the_guide_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack(REPO / "data_samples/raw", tmp_path / "out", "--labels", "index")
    page = (REPO / "docs/guide/seeing.md").read_text()
    snippets = re.findall("```python\n(.*?)```", page, re.DOTALL)
    checks = ["assert palette[2] == (128, 64, 128)", "assert palette.lookup[label].shape == (256, 384, 3)"]
    run_script("\n".join([*snippets, *checks]), tmp_path, monkeypatch)
    for command in re.findall("^packer ((?:show|sheet) .*)$", page, re.MULTILINE):
        assert run(*shlex.split(command, comments=True)).exit_code == 0, command


ON_TERMINALS = {
    ("xterm-256color", "truecolor", ""): b"\x1b[38;2;",
    ("xterm-256color", "", ""): b"\x1b[38;5;",
    ("xterm-256color", "truecolor", "1"): None,
    ("dumb", "", ""): None,
}


@pytest.mark.parametrize(("terminal", "code"), ON_TERMINALS.items())
def test_packer_show_uses_the_colours_of_the_terminal(
    hostile: Path, terminal: tuple[str, str, str], code: bytes | None
) -> None:
    variables = dict(zip(("TERM", "COLORTERM", "NO_COLOR"), terminal, strict=True))
    output = b"".join(printed_to_a_terminal(["show", str(hostile), HOSTILE[0], "--opacity", "0.9"], variables))
    assert (code in output) if code else b"\x1b" not in output
    assert b"train, 20x30" in output


def printed_to_a_terminal(arguments: list[str], variables: dict[str, str]) -> Iterator[bytes]:
    ours, theirs = pty.openpty()
    environment = {
        **os.environ,
        "PYTHONPATH": str(REPO),
        "PYTHONUTF8": "1",
        "COLUMNS": "40",
        "LINES": "20",
        **variables,
    }
    command = [sys.executable, "-m", "packer", *arguments]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment):
        os.close(theirs)
        try:
            while data := os.read(ours, 4096):
                yield data
        except OSError:  # the other side is closed
            pass
    os.close(ours)
