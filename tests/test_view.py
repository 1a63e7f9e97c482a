"""`packer view`: rows are those that a query asks for, layers are the stored numbers, and strangers get nothing."""

from __future__ import annotations

import asyncio
import io
import re
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from any_pack import FIELDS, write_any_pack
from conftest import RawFolder, pack, run, write_png
from numpy.typing import NDArray
from PIL import Image
from starlette.testclient import TestClient

from packer import Rows, build_pack
from packer.errors import InputError
from packer.view.app import make_app
from packer.view.guard import HEADERS
from packer.view.row_index import RowIndex
from packer.view.scores import read_scores
from packer.view.serve import is_loopback, own_names, serve
from packer.view.viewed import Settings, Viewed
from readers import open_dataset
from readers.contract.bits import pack_bits
from readers.contract.kinds import BITS, CLASSES, IDS, MULTILABEL, PICTURE, VALUES
from readers.contract.manifest import Manifest
from readers.contract.onehot import collapse
from readers.contract.plain_text import UNSAFE
from readers.formats.shard import Shard
from readers.pack import Pack

pytestmark = pytest.mark.usefixtures("in_process")
OURS, TOKEN = "http://127.0.0.1:8000", "secret"
KEYS = ["<script>alert(1)</script>", "\"'`&amp;", "../../etc/passwd", "\u202egnp.exe", "k" * 500, "{{ 7*7 }}"]
NAMES = [*KEYS, "two\nlines", "\x1b[31mred"]


def client_of(settings: Settings, wait: bool = True) -> TestClient:
    viewed = Viewed(settings)
    assert not wait or viewed.index.wait(60), viewed.index.problem
    return TestClient(make_app(viewed, own_names(8000), TOKEN), base_url=f"{OURS}/{TOKEN}")


def rows_of(client: TestClient, **asked: Any) -> list[Any]:
    answer = client.get("/api/rows", params={name.rstrip("_"): value for name, value in asked.items()})
    assert answer.status_code == 200, answer.text
    found: list[Any] = answer.json()["rows"]
    assert answer.json()["total"] == len(found)
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten rows of two classes in two splits: row n has n pixels of the class `few`, and 2n ignored ones."""
    out = tmp_path_factory.mktemp("view") / "out"

    def load(key: str) -> dict[str, NDArray[Any]]:
        number, label = int(key[-1]), np.zeros((8, 16), np.uint8)
        label.reshape(-1)[:number] = 1
        label.reshape(-1)[number : 3 * number] = 255
        return {"image": np.full((8, 16, 3), 20 * number, np.uint8), "label": label}

    keys = [("train" if number < 6 else "val", f"Row{number}") for number in range(10)]
    rows = Rows(keys, lambda key: load(key[1]))
    build_pack(rows, out, classes=["most", "few"], labels="index", ignore=["255"], workers=1)
    return out


@pytest.fixture(scope="module")
def client(made: Path) -> TestClient:
    return client_of(Settings(made))


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ({}, range(10)),
        ({"descending": 1}, range(9, -1, -1)),
        ({"split": "val"}, range(6, 10)),
        ({"text": "rOW7"}, [7]),
        ({"text": "nothing"}, []),
        ({"class_": 1}, range(1, 10)),
        ({"class_": 1, "least": 3 / 128, "most": 5 / 128}, [3, 4, 5]),
        ({"ignored_least": 0.11}, [8, 9]),
        ({"ignored_most": 0.0}, [0]),
        ({"class_": 1, "sort": "share", "descending": 1, "split": "train"}, [5, 4, 3, 2, 1]),
        ({"sort": "ignored", "descending": 1}, range(9, -1, -1)),
        ({"sort": "brightness", "descending": 1}, range(9, -1, -1)),
        ({"sort": "many"}, range(10)),
        ({"finding": "no such"}, []),
    ],
)
def test_rows_are_those_of_the_query(client: TestClient, asked: dict[str, Any], wanted: range) -> None:
    assert [row[0] for row in rows_of(client, **asked)] == list(wanted)


def test_a_part_of_the_rows_with_their_facts(client: TestClient) -> None:
    answer = client.get("/api/rows", params={"from": 4, "count": 2, "sort": "share", "class": 1}).json()
    assert answer == {
        "total": 9,
        "from": 4,
        "rows": [
            [5, "train", "Row5", 8, 16, pytest.approx(5 / 128)],
            [6, "val", "Row6", 8, 16, pytest.approx(6 / 128)],
        ],
    }
    facts = client.get("/api/rows/3").json()
    assert (facts["key"], facts["split"], facts["size"]) == ("Row3", "train", [8, 16])
    assert facts["fields"][1]["classes"] == [["most", 128 - 9], ["few", 3]]
    assert facts["fields"][1]["whole"]


def test_the_first_rows_come_before_all_are_counted(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RowIndex, "start", lambda index: None)
    client = client_of(Settings(made), wait=False)
    assert len(rows_of(client)) == 10
    assert len(rows_of(client, text="row1")) == 1
    busy = client.get("/api/rows", params={"sort": "ignored"})
    assert (busy.status_code, busy.json()) == (503, {"counted": 0, "rows": 10, "problem": ""})


@pytest.mark.parametrize(
    "address",
    [
        "/api/rows?split=other",
        "/api/rows?class=2",
        "/api/rows?class=-1",
        "/api/rows?class=1&least=nan",
        "/api/rows?most=2",
        "/api/rows?sort=path",
        "/api/rows?from=x",
        f"/api/rows?from={'9' * 400}",
        f"/api/rows?text={'x' * 1001}",
        "/api/rows/10",
        "/api/rows/-1",
        "/api/rows/%2e%2e%2fmanifest.json",
        "/DIGEST/thumbnail/10",
        "/DIGEST/thumbnail/1?labels=x",
        "/DIGEST/layer/1/image",
        "/DIGEST/layer/1/nothing",
        "/DIGEST/layer/1/..",
        "/DIGEST/picture/1/image?low=a&high=b",
        "/DIGEST/picture/1/image?low=0&high=inf",
        "/0000/picture/1/image",
        "/difference/1/image?other=1",
        "/difference/1/image",
        "/DIGEST/picture/1/image?of=file",
        "/DIGEST/layer/1/label?of=again",
        "/DIGEST/picture/1/image?of=/etc/passwd",
        "/api/raw/10",
        "/api/raw/..",
        "/manifest.json",
        "/../manifest.json",
        "/static/../../packer/view/app.py",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2fsetup.cfg",
        "//etc/passwd",
        "/api",
    ],
)
def test_other_addresses_are_refused(client: TestClient, address: str) -> None:
    digest = client.get("/api/pack").json()["digest"]
    answer = client.get(address.replace("DIGEST", digest))
    assert answer.status_code in (400, 403, 404), answer.text
    assert len(answer.text) < 200
    for name, value in HEADERS.items():
        assert answer.headers[name] == value


@pytest.mark.parametrize("varied", [False, True])
def test_every_kind_of_field_comes_as_it_is_stored(varied: bool, tmp_path: Path) -> None:
    written = write_any_pack(tmp_path / "out", "npy", varied)
    client = client_of(Settings(tmp_path / "out"), wait=False)
    digest = client.get("/api/pack").json()["digest"]
    for row, stored in enumerate(written.values()):
        thumbnail = client.get(f"/{digest}/thumbnail/{row}")
        assert thumbnail.headers["content-type"] == "image/jpeg"
        assert "immutable" in thumbnail.headers["cache-control"]
        for field in FIELDS:
            if field.name not in stored:
                assert client.get(f"/{digest}/layer/{row}/{field.name}").status_code == 400
                continue
            pixels = stored[field.name]
            if field.kind == PICTURE:
                answer = client.get(f"/{digest}/picture/{row}/{field.name}")
                image = np.asarray(Image.open(io.BytesIO(answer.content)))
                assert image.shape == (*pixels.shape[-2:], 3)
                assert field.name != "image" or np.array_equal(image, np.moveaxis(pixels, 0, -1))
                continue
            answer = client.get(f"/{digest}/layer/{row}/{field.name}")
            *shape, size = map(int, answer.headers["x-shape"].split())
            found = np.frombuffer(answer.content, f"<u{size}").reshape(shape)
            if field.kind == CLASSES and field.classes is not None:
                index = pixels if field.form == "index" else collapse(pixels, field.classes.index_dtype)
                assert np.array_equal(found[0], index)
            elif field.kind == MULTILABEL:
                assert np.array_equal(found, pixels if field.form == BITS else pack_bits(pixels))
            elif field.kind == IDS:
                assert np.array_equal(found[0], pixels)
            else:
                assert field.kind == VALUES
                first, last = map(float, answer.headers["x-range"].split())
                there = np.isfinite(pixels) & (pixels != np.float64(field.fill))
                assert np.array_equal(found[0] == 0, ~there)
                values = first + (found[0][there] - 1.0) / 65534 * (last - first)
                assert values == pytest.approx(pixels[there].astype(np.float64), abs=(last - first) / 65534)


def test_planes_of_a_volume_come_as_they_are_stored(tmp_path: Path) -> None:
    sides = 5, 6, 7
    image = np.random.default_rng(3).integers(0, 255, sides, np.uint8)
    rows = Rows(["a"], lambda key: {"image": image[..., None], "label": image % 3}, sizes=sides)
    build_pack(rows, tmp_path / "out", classes="3", labels="index", bands="all", volumes=True, workers=1)
    client = client_of(Settings(tmp_path / "out"), wait=False)
    digest = client.get("/api/pack").json()["digest"]
    assert client.get("/api/rows/0").json()["size"] == list(sides)
    for side, length in enumerate(sides):
        for at in (0, length - 1, length // 2):
            layer = client.get(f"/{digest}/layer/0/label?side={side}&at={at}")
            *shape, _ = map(int, layer.headers["x-shape"].split())
            plane = image.take(at, side)
            assert np.array_equal(np.frombuffer(layer.content, np.uint8).reshape(shape)[0], plane % 3)
            picture = client.get(f"/{digest}/picture/0/image?side={side}&at={at}")
            assert np.array_equal(np.asarray(Image.open(io.BytesIO(picture.content)))[..., 0], plane)
    middle = client.get(f"/{digest}/layer/0/label").content
    assert middle == client.get(f"/{digest}/layer/0/label?side=0&at=2").content
    assert client.get(f"/{digest}/layer/0/label?side=0&at=99").content == (image[-1] % 3).tobytes()
    for wrong in ("side=3&at=0", "side=-1&at=0", "side=0&at=-1", "side=0", "side=0&at=1e3"):
        assert client.get(f"/{digest}/layer/0/label?{wrong}").status_code == 400


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost:8000"}, 200),
        ({"host": "LOCALHOST:8000", "origin": "http://localhost:8000"}, 200),
        ({"host": "evil.example"}, 403),
        ({"host": "evil.example:8000"}, 403),
        ({"host": "127.0.0.1:8001"}, 403),
        ({"host": "127.0.0.1"}, 403),
        ({"host": ""}, 403),
        ({"origin": OURS}, 200),
        ({"origin": "http://localhost:8000"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"sec-fetch-site": "none"}, 200),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}, 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}, 403),
    ],
)
def test_only_the_page_gets_answers(client: TestClient, headers: dict[str, str], status: int) -> None:
    assert client.get("/api/rows", headers=headers).status_code == status


def test_a_link_opens_the_page_and_a_frame_does_not(client: TestClient) -> None:
    followed = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert client.get("/", headers=followed).status_code == 200
    assert client.get("/", headers={**followed, "sec-fetch-dest": "iframe"}).status_code == 403
    assert client.get("/", headers={**followed, "host": "evil.example"}).status_code == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_nothing_can_be_changed(client: TestClient, method: str) -> None:
    assert client.request(method, "/api/rows").status_code == 405


def test_with_a_token_addresses_begin_with_it(made: Path) -> None:
    viewed = Viewed(Settings(made))
    ours, anywhere = (TestClient(make_app(viewed, hosts, TOKEN), base_url=OURS) for hosts in (own_names(8000), ()))
    there = {"host": "gpu7.example:8000"}
    for address in ("/", "/api/rows", "/secre/api/rows", "/secrets/api/rows", "//secret/api/rows", "/?token=secret"):
        assert ours.get(address).status_code == anywhere.get(address, headers=there).status_code == 403
    for address in ("/secret/", "/secret/api/rows", "/secret/view.css"):
        assert ours.get(address).status_code == anywhere.get(address, headers=there).status_code == 200
        assert ours.get(address, headers=there).status_code == 403
    assert anywhere.get("/secret/api/rows", headers={"origin": "http://evil.example"}).status_code == 403


def test_the_token_is_in_no_argument_of_the_browser(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(Path(url.removeprefix("file://")).read_text()))
    monkeypatch.setattr("uvicorn.Server.run", lambda server, sockets: None)
    for _ in range(2):
        serve(Settings(made), "127.0.0.1", 0, True, said.append)
    addresses = [re.fullmatch(r"http://127\.0\.0\.1:\d+/([\w-]{32})/", line) for line in said]
    assert len({address[1] for address in addresses if address}) == 2
    assert all(line in page for line, page in zip(said, opened, strict=True))


def test_an_address_without_a_slash_is_refused(made: Path) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("nothing is read")

    scope = {"type": "http", "method": "OPTIONS", "path": "*", "query_string": b"", "headers": [(b"host", b"x")]}

    async def ask() -> None:
        await make_app(Viewed(Settings(made)), [], TOKEN)(scope, receive, send)

    asyncio.run(ask())
    assert sent[0]["status"] == 403


def test_the_page_loads_only_from_here_and_has_no_inline_scripts(client: TestClient) -> None:
    page = client.get("/").text
    policy = client.get("/").headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "http" not in policy
    assert "<style" not in page
    assert " style=" not in page
    assert not re.search(r"<[^>]* on\w+=", page)
    for name in (
        "main.js",
        "grid.js",
        "detail.js",
        "layer.js",
        "palette.js",
        "pane.js",
        "api.js",
        "view.css",
        "icon.svg",
    ):
        text = client.get(f"/{name}").text
        for word in ("https://", "innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "document.write", "@import"):
            assert word not in text, name


def test_hostile_names_leave_as_harmless_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("packer.classes.load.odd_character", lambda name: None)  # as in packs of older versions
    label = np.zeros((4, 4), np.uint8)
    rows = Rows(sorted(KEYS), lambda key: {"image": np.zeros((4, 4, 3), np.uint8), "label": label + len(key) % 2})
    build_pack(rows, tmp_path / "out", classes=NAMES, labels="index", workers=1)
    client = client_of(Settings(tmp_path / "out"))
    for address in ("/api/pack", "/api/rows", *[f"/api/rows/{row}" for row in range(len(KEYS))]):
        answer = client.get(address)
        assert answer.headers["content-type"] == "application/json"
        assert all(not UNSAFE.search(text) and "\n" not in text for text in texts_of(answer.json()))
    assert len(rows_of(client, text="\u202egnp")) == 1
    assert len(rows_of(client, text="<SCRIPT>")) == 1


def texts_of(document: Any) -> list[str]:
    if isinstance(document, str):
        return [document]
    parts = document.values() if isinstance(document, dict) else document if isinstance(document, list) else []
    return [text for part in parts for text in texts_of(part)]


def test_scores_sort_and_filter_rows(made: Path, tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text("key,score\nRow3,0.5\nval/Row7,2\nRow1,-1\n")
    client = client_of(Settings(made, scores=tmp_path / "scores.csv"))
    assert [row[0] for row in rows_of(client, sort="score")][:3] == [1, 3, 7]
    assert [row[0] for row in rows_of(client, sort="score", descending=1)][:3] == [7, 3, 1]
    assert [row[0] for row in rows_of(client, score_least=0)] == [3, 7]
    assert [row[0] for row in rows_of(client, score_most=0.5)] == [1, 3]
    assert [row[0] for row in rows_of(client, score_least=0, score_most=1)] == [3]
    assert client.get("/api/pack").json()["score_range"] == [-1, 2]
    assert client.get("/api/rows/7").json()["score"] == 2
    assert client.get("/api/rows/8").json()["score"] is None
    assert client.get("/api/rows?score_least=x").status_code == 400
    assert client.get("/api/rows?score_most=nan").status_code == 400


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (b"Row3,1\nRow5,2\n", {3: 1, 5: 2}),
        (b"Row3,1\nRow5,nan\nRow6,\n", {3: 1}),
        (b"Row3,nan\nRow5,2", {5: 2}),
        (b"\xef\xbb\xbfRow3,1\r\nRow5,2\r\n", {3: 1, 5: 2}),
        (b"\xef\xbb\xbfkey,score\r\nRow3, 1e-3 \r\n", {3: 1e-3}),
        (b'\n\n"Row3","1"\n\n"train/Row5",2\n', {3: 1, 5: 2}),
        (b"Row3,1\ntrain/Row3,2\n", {3: 2}),
        (b"", {}),
    ],
)
def test_odd_files_of_scores(text: bytes, wanted: dict[int, float], made: Path, tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_bytes(text)
    found = read_scores(Pack.open(made), tmp_path / "scores.csv")
    assert {row: pytest.approx(float(found[row])) for row in np.flatnonzero(np.isfinite(found)).tolist()} == wanted


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"Row3,1\nRow77,1\n", "line 2: unknown key"),
        (b"Row3,1\nval/Row3,1\n", "line 2: unknown key"),
        (b"a,b,c\nRow1,x\n", "line 1: expected KEY,NUMBER; line 2: expected KEY,NUMBER"),
        (b"key,score\nRow1,inf\n", "line 2: expected KEY,NUMBER"),
        (b"Row1;1\n", "line 1: expected KEY,NUMBER"),
        (b"Row1,1\nRow2,1\nRow1,2\n", "line 3: the same key as in line 1"),
        (b"x" * 200_000 + b",1\n", "cannot be read as a table of scores (field larger"),
        (b"Row1,1\n\xff\xfe,2\n", "cannot be read as a table of scores ('utf-8'"),
        (b"".join(b"no%d,1\n" % number for number in range(9)), "line 5: unknown key; … and 4 more"),
    ],
)
def test_lines_of_scores_that_do_not_fit_are_named(text: bytes, words: str, made: Path, tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_bytes(text)
    with pytest.raises(InputError, match=re.escape(words)):
        read_scores(Pack.open(made), tmp_path / "scores.csv")


def test_all_keys_are_read_once(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scores.csv").write_text("".join(f"Row{number},{number}\n" for number in range(10)))
    asked: list[int] = []
    key = Shard.key

    def counted(shard: Shard, row: int) -> str:
        asked.append(row)
        return key(shard, row)

    monkeypatch.setattr(Shard, "key", counted)
    assert read_scores(Pack.open(made), tmp_path / "scores.csv").tolist() == list(range(10))
    assert len(asked) == 10


def test_another_generation_is_compared_by_key(tmp_path: Path) -> None:
    def build(keys: list[str], shade: int) -> None:
        def load(key: str) -> dict[str, NDArray[Any]]:
            image = np.full((4, 6, 3), 9, np.uint8)
            image[0, :shade] = 200
            return {"image": image, "label": np.zeros((4, 6), np.uint8)}

        rows = Rows(keys, load, version=lambda key: str(shade))
        build_pack(rows, tmp_path / "out", classes=1, labels="index", workers=1)

    build(["a", "b"], 0)
    build(["b", "c"], 2)
    assert Manifest.load(tmp_path / "out").generation == 2
    client = client_of(Settings(tmp_path / "out", against=1))
    facts = [client.get(f"/api/rows/{row}").json() for row in range(2)]
    assert [row["against"] for row in facts] == [1, None]
    differ = client.get("/difference/0/image?other=1")
    assert differ.headers["x-pixels"] == "2"
    assert np.asarray(Image.open(io.BytesIO(differ.content)))[0, :3, 0].tolist() == [191, 191, 0]
    other = client.get("/api/pack").json()["against"]
    assert other["generation"] == 1
    assert client.get(f"/{other['digest']}/picture/1/image").status_code == 200


def test_a_generation_of_another_size_is_shown_and_not_subtracted(raw_folder: RawFolder, tmp_path: Path) -> None:
    for size in ("16x16", "20x24"):
        pack(raw_folder.path, tmp_path / "out", "--size", size, "--labels", "index")
    client = client_of(Settings(tmp_path / "out", against=1))
    facts = client.get("/api/pack").json()
    old = client.get(f"/{facts['against']['digest']}/layer/0/label")
    assert (old.status_code, old.headers["x-shape"]) == (200, "1 16 16 1")
    assert client.get(f"/{facts['digest']}/layer/0/label").headers["x-shape"] == "1 20 24 1"
    assert client.get("/difference/0/label?other=0").text == "the sizes differ, so no pixels can be compared"
    assert client.get(f"/{facts['against']['digest']}/layer/0/label?of=file").status_code == 400


def test_the_raw_files_of_a_row_come_in_both_sizes(raw_folder: RawFolder, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    shutil.copytree(raw_folder.path, raw)
    client = client_of(Settings(pack(raw, tmp_path / "out", "--size", "16x16", "--labels", "onehot")), wait=False)
    digest, differences = client.get("/api/pack").json()["digest"], {"image": [0, 0.0], "label": [0, None]}
    assert client.get("/api/raw/3").json() == {
        "problem": "",
        "notes": [],
        "own_size": True,
        "differences": differences,
    }
    stored, again, own = (client.get(f"/{digest}/picture/3/image?of={of}") for of in ("", "again", "file"))
    assert again.content == stored.content
    assert "immutable" in stored.headers["cache-control"]
    assert own.headers["cache-control"] == again.headers["cache-control"] == "no-store"
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(own.content))), raw_folder.images["train", "street_003"])
    layer = client.get(f"/{digest}/layer/3/label?of=file")
    assert np.array_equal(
        np.frombuffer(layer.content, np.uint8).reshape(24, 36), raw_folder.labels["train", "street_003"]
    )
    image = raw_folder.images["train", "street_003"].copy()
    image[:12] = 255 - image[:12]
    write_png(raw / "train/images/street_003.png", image)
    facts = client.get("/api/raw/3").json()
    assert facts["differences"]["image"][0] == 128
    assert facts["notes"] == ["train/images/street_003.png: was changed since it was packed"]
    differ = client.get("/difference/3/image")
    assert differ.headers["x-pixels"] == "128"
    seen = np.asarray(Image.open(io.BytesIO(differ.content)))
    assert seen[:8].any(-1).all()
    assert not seen[8:].any()
    (raw / "train/images/street_003.png").unlink()
    assert "is not there any more" in client.get("/api/raw/3").json()["problem"]
    assert client.get(f"/{digest}/picture/3/image?of=file").status_code == 400


def test_findings_are_filters(packed_index: Path) -> None:
    client = client_of(Settings(packed_index))
    facts = client.get("/api/pack").json()
    assert facts["rows"] == len(open_dataset(packed_index, "all"))
    for kind, (_, count) in facts["findings"].items():
        assert len(rows_of(client, finding=kind)) == count


def test_no_counts_stay_behind(made: Path) -> None:
    index = RowIndex(Pack.open(made))
    index.start()
    until = time.monotonic() + 60
    while not index.wait(0.1):
        assert time.monotonic() < until
    assert index.pixels(1).tolist() == list(range(10))
    assert index.ignored.tolist() == pytest.approx([2 * number / 128 for number in range(10)])


def test_other_hosts_are_known() -> None:
    assert [is_loopback(host) for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost")] == [True] * 4
    assert [is_loopback(host) for host in ("0.0.0.0", "::", "192.168.1.2", "localhost.example", "")] == [False] * 5


def test_a_port_that_is_taken_is_a_usage_error(made: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = run("view", made, "--port", taken.getsockname()[1])
    assert result.exit_code == 2
    assert "choose another --port" in result.stderr
