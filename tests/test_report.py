"""`packer report`: its numbers are those of the pixels, its names are harmless, and it loads nothing."""

from __future__ import annotations

import html as entities
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from any_pack import NAMES, write_any_pack
from conftest import RawFolder, good, make_varied_raw, without_workers

from packer import PictureField, Rows, build_pack
from packer.packs.recipe_words import FIT_WORDS, INTERPOLATION_WORDS, recipe_words
from packer.pixels.choices import FITS, INTERPOLATIONS
from packer.publish.remarks import load_remarks
from packer.publish.target import REMARKS, STAMPS
from packer.report.gather import MOST_EXTREME
from packer.report.page import html
from packer.report.report import make_report
from readers import open_dataset

pytestmark = pytest.mark.usefixtures("in_process")
LOADING = ("src", "href", "srcset", "data", "action", "poster", "background")


class Page(HTMLParser):
    """The tags of a page, the addresses that it would load, its texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.handlers: list[str] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in LOADING]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data: str) -> None:
        self.words += data


def test_the_numbers_are_those_of_the_pixels(packed_index: Path) -> None:
    report = make_report(packed_index, rows=5)
    data = open_dataset(packed_index, "all", label="index")
    labels = [np.asarray(sample[1]) for sample in data]
    means = np.array([np.asarray(sample[0]).mean() / 255 for sample in data])
    classes = len(data.classes)
    there = np.array([[bool((label == number).any()) for number in range(classes)] for label in labels])
    found = report.gathered
    assert found.together is not None
    assert (found.together == there.T.astype(int) @ there.astype(int)).all()
    assert found.many.tolist() == np.bincount(there.sum(1), minlength=classes + 1).tolist()
    assert (found.rows, found.labelled, found.ignored.sum()) == (len(data), len(data), len(data))
    assert found.extremes["dark"].rows.tolist() == np.argsort(means, kind="stable")[:MOST_EXTREME].tolist()
    assert found.extremes["bright"].rows.tolist() == np.argsort(-means, kind="stable")[:MOST_EXTREME].tolist()
    assert found.extremes["few"].values[0] == there.sum(1).min()
    ignored = np.array([(label == 255).mean() for label in labels])
    assert found.extremes["ignored"].values.tolist() == pytest.approx(
        (100 * np.sort(ignored[ignored > 0])[::-1][:MOST_EXTREME]).tolist()
    )
    assert report.sizes == {(24, 36): len(data)}
    assert sum(maps.rows for maps in report.heat.values()) == len(data)
    assert len(report.draw) == 5


def test_heat_maps_show_where_a_class_lies(tmp_path: Path) -> None:
    label = np.zeros((64, 32), np.uint8)
    label[:32] = 1
    rows = Rows([f"a{n}" for n in range(3)], lambda key: {"image": np.zeros((64, 32, 3), np.uint8), "label": label})
    for form in ("index", "onehot"):
        build_pack(rows, tmp_path / form, classes=["below", "above"], labels=form, workers=1)
        (heat,) = make_report(tmp_path / form).heat.values()
        assert (heat.shares[1][:16] == 1).all()
        assert (heat.shares[1][16:] == 0).all()
        assert (heat.shares.sum(0) == 1).all()


@pytest.fixture(scope="module")
def out(raw_folder: RawFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack in one format: pages do not depend on it."""
    out = tmp_path_factory.mktemp("report") / "out"
    with without_workers():
        build_pack(raw_folder.path, out, labels="index", shard_size="30KB")
    return out


def test_the_page_loads_nothing_and_runs_nothing(out: Path, tmp_path: Path) -> None:
    done = good("report", "--quiet", "--rows", 3, "--seed", 7, out, "--output", tmp_path / "report.html")
    assert not done.stdout
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert not {"script", "link", "iframe", "object", "form", "base"} & {*page.tags}
    assert {address.partition(":")[0] for address in page.addresses if not address.startswith("#")} == {"data"}
    assert not page.handlers
    assert "url(" not in text.replace("data:", "")
    assert "default-src &#39;none&#39;" in text or "default-src 'none'" in text
    pictures = sum(map(len, re.findall('data:image[^"]*', text)))
    assert len(text) - pictures < 1 << 20


def test_the_same_pack_gives_the_same_page(out: Path) -> None:
    pages = [re.sub(r"[\d,]+ rows/s, [\d,]+ MB/s[^<]*", "", html(make_report(out, seed=3))) for _ in range(2)]
    assert pages[0] == pages[1]


HOSTILE = [
    "<script>alert(1)</script>",
    "\"onload='x",
    "../../etc/passwd",
    "evil\u202egpj",
    "x" * 500,
    "a&b;",
    "{{ 7*7 }}",
]


def test_hostile_names_are_harmless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("packer.classes.load.odd_character", lambda name: None)  # as in packs of older versions
    keys = sorted(HOSTILE)
    rows = Rows(keys, lambda key: {"image": np.full((8, 8, 3), 9, np.uint8), "label": np.zeros((8, 8), np.uint8)})
    classes = ["</style><b>", "b\u2066c", "\x1b]0;x\x07", "n\nl"]
    build_pack(rows, tmp_path / "out", classes=classes, labels="index", workers=1)
    text = html(make_report(tmp_path / "out"))
    page = Page(text)
    assert "<script" not in text.lower()
    assert not page.handlers
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x1b\x07]", text)
    assert "\\u202e" in page.words
    assert "{{ 7*7 }}" in page.words
    assert "<script>alert(1)</script>" in page.words
    assert entities.escape("</style><b>") in text


def test_every_kind_of_field(tmp_path: Path) -> None:
    write_any_pack(tmp_path / "out", "npy")
    text = html(make_report(tmp_path / "out"))
    assert "comes from its receipts" in text
    assert "is damaged" in text  # the reason of a reject
    assert "The sizes before are not known" in text


def test_what_counts_of_rows_do_not_describe(tmp_path: Path) -> None:
    """All rows of a small pack are in the draw, and all pixels of a small row are looked at."""
    rows = write_any_pack(tmp_path / "out", "npy").values()
    report = make_report(tmp_path / "out")
    found = {drawn.field.name: drawn for drawn in report.fields}
    assert found.keys() == set(NAMES) - {"label"}  # the first picture is none of bytes
    depths = [row["depth"] for row in rows if "depth" in row]
    depth, heights = found["depth"], [row["height"] for row in rows]
    assert (depth.rows, found["height"].rows) == (len(depths), len(rows))
    assert (depth.least, depth.most) == (np.nanmin(depths), np.nanmax(depths))
    assert sorted(depth.empty) == pytest.approx(sorted(np.isnan(each).mean() for each in depths))
    assert sorted(found["height"].means) == pytest.approx(sorted(each[each != -1].mean() for each in heights))
    objects = [np.setdiff1d(row["instance"], 0).size for row in rows]
    assert sorted(found["instance"].objects) == sorted(objects)
    assert sum(int(sizes.sum()) for sizes in found["panoptic"].sizes) == sum(
        (row["panoptic"] != 0).sum() for row in rows
    )
    assert (found["scan"].least, found["scan"].most) == (
        min(r["scan"].min() for r in rows),
        max(r["scan"].max() for r in rows),
    )
    words = Page(html(report)).words
    for title in ("depth: measured values", "instance: objects", "scan: a picture", "parts: classes that may overlap"):
        assert title in words
    missing = sum(int(np.isnan(each).sum()) for each in depths) / sum(each.size for each in depths)
    assert f"{100 * missing:.1f} % of the pixels of all rows have no value" in words
    assert f"{len(depths)} of {len(rows)} rows have it" in words
    assert f"{sum(objects):,} objects in {len(rows)} rows" in words


def test_findings_and_rejects_are_shown_with_their_pictures(raw_folder: RawFolder, tmp_path: Path) -> None:
    raw, out = tmp_path / "raw", tmp_path / "out"
    shutil.copytree(raw_folder.path, raw)
    images = sorted(path for path in raw.rglob("*.png") if "image" in path.parent.name)
    train, val = ([path for path in images if split in path.parts] for split in ("train", "val"))
    val[0].write_bytes(train[0].read_bytes())
    train[3].write_bytes(train[3].read_bytes()[:-60])
    build_pack(raw, out, labels="index", on_bad="skip")
    report = make_report(out)
    (group,) = report.doubles
    assert [row.name for row in group.rows] == [f"train/{train[0].stem}", f"val/{val[0].stem}"]
    assert group.rows[0].picture
    words = Page(html(report)).words
    assert f"train/{train[3].stem}" in words
    assert "the same image in more than one split" in words
    pulled = shutil.copytree(out, tmp_path / "pulled", ignore=shutil.ignore_patterns(STAMPS, REMARKS))
    again = make_report(pulled)
    assert again.doubles == report.doubles
    assert report.remarks is not None
    assert again.remarks == replace(report.remarks, seconds=0, reused=0)
    assert "comes from its receipts" in html(again)
    assert load_remarks(pulled, again.manifest) == again.remarks
    next(pulled.glob("shards/*.receipt.json")).write_text("{}")
    shutil.rmtree(pulled / REMARKS)
    assert "a receipt is damaged" in html(make_report(pulled))


def test_the_sizes_before_are_those_of_the_files(tmp_path: Path) -> None:
    raw = make_varied_raw(tmp_path / "raw", {"train": [(9, 300), (9, 300), (70, 8)], "val": [(9, 300)]})
    build_pack(raw.path, tmp_path / "out", labels="index", size=(8, 8), workers=1)
    assert make_report(tmp_path / "out").sizes == {(9, 300): 3, (70, 8): 1}


def test_a_pack_without_labels_and_a_pack_without_stamps(out: Path, tmp_path: Path) -> None:
    rows = Rows(["a", "b"], lambda key: {"image": np.full((8, 8, 3), 9, np.uint8)})
    build_pack(rows, tmp_path / "bare", fields=[PictureField("image")], workers=1)
    assert "The rows have no classes" in html(make_report(tmp_path / "bare"))
    shutil.copytree(out, tmp_path / "copy", ignore=shutil.ignore_patterns(STAMPS, REMARKS))
    ours, theirs = (make_report(each) for each in (out, tmp_path / "copy"))
    assert (ours.gathered.together == theirs.gathered.together).all()  # type: ignore[union-attr]
    assert [row.name for group in ours.groups for row in group.rows] == [
        row.name for group in theirs.groups for row in group.rows
    ]


def test_the_recipe_is_in_words() -> None:
    field = {"field": {"name": "label"}, "from": "labels/{key}", "read": {"codec": "index", "threshold": None}}
    recipe = {"size": [8, 9], "fit": "tile", "overlap": 2, "edge": "pad", "interpolation": "area", "fields": [field, 3]}
    assert dict(recipe_words(recipe | {"shard_bytes": 4000, "tools": ["x"], "made": "up"})) == {
        "stored size": "8x9",
        "pictures of another size": "cut into tiles; 2 pixels overlap, edges: pad",
        "label": "from labels/{key}, codec index",
        "": "as the source has it",
        "shards": "of about 4,000 bytes",
        "made": "up",
    }
    native = dict(recipe_words({"size": [], "fit": "native", "interpolation": "area"}))
    assert native == {"pictures of another size": "not scaled; each has its own size"}
    assert set(FIT_WORDS) == set(FITS)
    assert set(INTERPOLATION_WORDS) == set(INTERPOLATIONS)
