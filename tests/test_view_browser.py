"""Chromium opens the pages of `packer view` and `packer report`: controls work, nothing is loaded from elsewhere."""

from __future__ import annotations

import io
import socket
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uvicorn
from any_pack import write_any_pack
from conftest import make_raw, pack
from numpy.typing import NDArray
from PIL import Image

from packer import Rows, build_pack
from packer.view.app import make_app
from packer.view.serve import own_names
from packer.view.viewed import Settings, Viewed

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="opens pages: pip install playwright axe-playwright-python"
)

CHROMIUM = Path("/usr/bin/chromium")
OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
)
HOSTILE = ["<img src=x onerror=alert(1)>", "\"'`&amp;", "../../etc/passwd", "\u202egnp.exe", "k" * 500]
pytestmark = [
    pytest.mark.long,
    pytest.mark.usefixtures("in_process"),
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"opens pages in {CHROMIUM}"),
]


@contextmanager
def served(settings: Settings) -> Iterator[str]:
    """Serve a pack on a free port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        app = make_app(Viewed(settings), own_names(port), "secret")
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}/secret/"
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(OPTIONS))
        yield browser
        browser.close()


@contextmanager
def opened(browser: Any, address: str, **options: Any) -> Iterator[Any]:
    """Open a page. Whatever it prints as an error, and each request to another host, fails the test."""
    page = browser.new_page(**{"viewport": {"width": 1200, "height": 800}, **options})
    problems: list[str] = []
    origin = address.split("/", 3)[2]
    page.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: problems.append(dialog.message))
    page.on("request", lambda asked: problems.append(asked.url) if origin not in asked.url else None)
    page.set_default_timeout(10_000)
    try:
        page.goto(address)
        yield page
        page.wait_for_timeout(200)
    finally:
        page.close()
    assert not [each for each in problems if not each.startswith(("blob:", "data:"))]


def wait(page: Any, condition: str) -> None:
    """Wait until a condition holds. Playwright's own way compiles a text, which our page forbids."""
    until(page, lambda: page.evaluate(f"() => Boolean(window.view && ({condition}))"), condition)


def until(page: Any, holds: Callable[[], bool], condition: str = "") -> None:
    """Wait until a function returns True."""
    for _ in range(200):
        if holds():
            return
        page.wait_for_timeout(50)
    raise AssertionError(condition)


def check_access(page: Any) -> None:
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    serious = [(each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in ("serious", "critical")]
    assert not serious


def over(page: Any, name: str = "over") -> NDArray[np.uint8]:
    """Return the pixels of the label that lies over the picture."""
    found = page.evaluate(f"() => document.getElementById('{name}').toDataURL('image/png')")
    return np.asarray(Image.open(io.BytesIO(b64decode(found.partition(",")[2]))).convert("RGBA"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two generations of rows with three classes in quarters and some ignored pixels; hostile keys among them."""
    out = tmp_path_factory.mktemp("browser") / "out"

    def build(shade: int) -> None:
        def load(key: str) -> dict[str, NDArray[Any]]:
            label = np.zeros((32, 48), np.uint8)
            label[:16, :24], label[16:, 24:], label[:4, 40:] = 1, 2, 255
            return {"image": np.full((32, 48, 3), shade + len(key) % 100, np.uint8), "label": label}

        rows = Rows(
            sorted([f"row{number:03}" for number in range(300)] + HOSTILE), load, version=lambda key: str(shade)
        )
        build_pack(rows, out, classes=HOSTILE[:3], labels="index", ignore=["255"], workers=1)

    build(100)
    build(120)
    return out


@pytest.fixture(scope="module")
def address(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    scores = tmp_path_factory.mktemp("scores") / "scores.csv"
    scores.write_text("".join(f"row{number:03},{number % 7}\n" for number in range(300)))
    with served(Settings(made, 1, scores)) as address:
        yield address


def seen(page: Any) -> list[str]:
    """Return the names of the first cells."""
    wait(page, "[...document.querySelectorAll('.cell:not([hidden]) .name')].every((cell) => cell.textContent)")
    cells = page.evaluate(
        "[...document.querySelectorAll('.cell:not([hidden])')]"
        ".map((cell) => [Number(cell.dataset.index), cell.querySelector('.name').textContent])"
    )
    return [name for _, name in sorted(cells)]


def test_rows_are_filtered_sorted_and_scrolled(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        page.wait_for_selector(".cell img[src]")
        status = page.locator("#status")
        sync_api.expect(status).to_have_text("305 rows")
        assert HOSTILE[0] in seen(page)
        check_access(page)
        page.fill("#text", "row29")
        sync_api.expect(status).to_have_text("10 rows")
        assert seen(page)[0] == "row290"
        page.select_option("#sort", "score")
        page.check("#descending")
        wait(page, "document.querySelector('#row-0 .number').textContent.endsWith('6')")
        assert page.get_attribute("#score_most", "placeholder") == "6"
        page.fill("#score_least", "4")
        page.fill("#score_most", "5")
        wait(page, "document.querySelector('#row-0 .number')?.textContent.endsWith('5')")
        sync_api.expect(status).to_have_text("4 rows")
        page.click("button[type=reset]")
        sync_api.expect(status).to_have_text("305 rows")
        for value, rows in (("0", 305), ("2", 305)):
            page.select_option("#class", value)
            sync_api.expect(status).to_have_text(f"{rows} rows")
        page.fill("#least", "40")
        sync_api.expect(status).to_have_text("0 rows")
        page.fill("#least", "")
        page.fill("#most", "30")
        sync_api.expect(status).to_have_text("305 rows")
        page.fill("#ignored_least", "50")
        sync_api.expect(status).to_have_text("0 rows")
        page.fill("#ignored_least", "")
        page.fill("#ignored_most", "60")
        sync_api.expect(status).to_have_text("305 rows")
        for sort in ("share", "ignored", "many", "brightness", ""):
            page.select_option("#sort", sort)
            assert seen(page)
        page.select_option("#labels", "1")
        page.check("#blind")
        page.wait_for_selector(".cell img[src*='blind=1']")
        page.click("#remarks summary")
        page.focus("#grid")
        page.keyboard.press("End")
        wait(page, "view.grid.current === 304")
        page.keyboard.press("Home")
        for key in ("ArrowDown", "ArrowRight", "PageDown", "PageUp", "ArrowUp"):
            page.keyboard.press(key)
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.id") == "text"
        asked = page.url
    with opened(browser, asked) as page:
        page.wait_for_selector(".cell img[src]")
        assert page.input_value("#labels") == "1"
        assert page.input_value("#ignored_most") == "60"


@pytest.mark.parametrize("way", ["", "?draw=2d", "?draw=webgl2"])
def test_a_row_is_looked_at_closely(way: str, browser: Any, address: str) -> None:
    with opened(browser, f"{address}{way}#row=10") as page:
        wait(page, "view.detail.drawnLayer")
        whole = over(page)
        assert whole.any()
        check_access(page)
        boxes = page.locator("#classes input")
        assert boxes.count() == 4
        boxes.nth(1).uncheck()
        without = over(page)
        assert 0 < np.count_nonzero(without) < np.count_nonzero(whole)
        boxes.nth(1).check()
        assert np.array_equal(over(page), whole)
        boxes.nth(0).uncheck()
        assert np.count_nonzero(over(page)) < np.count_nonzero(without)
        boxes.nth(0).check()
        page.uncheck("#ignored")
        assert np.count_nonzero(over(page)) < np.count_nonzero(whole)
        page.check("#ignored")
        page.focus("#stage")
        page.keyboard.press("o")
        assert page.is_checked("#outlines")
        assert over(page).reshape(-1, 4)[:, 3].max() == 255
        page.keyboard.press("o")
        page.keyboard.press("+")
        assert page.input_value("#opacity") == "60"
        page.keyboard.press("-")
        assert np.array_equal(over(page), whole)
        page.keyboard.press(" ")
        assert not over(page).any()
        page.keyboard.press(" ")
        page.check("#blind")
        wait(page, "location.hash.includes('blind=1')")
        until(page, lambda: not np.array_equal(over(page), whole))
        page.hover("#stage")
        page.mouse.wheel(0, -400)
        page.mouse.down()
        page.mouse.move(500, 300)
        page.mouse.up()
        assert page.locator("#pixel").text_content()
        page.focus("#stage")
        page.keyboard.press("0")
        page.keyboard.press("ArrowRight")
        wait(page, "location.hash.includes('row=')")
        page.click("#after")
        page.click("#before")
        for choice in ("other", "pixels", ""):
            page.select_option("#compare", choice)
            sync_api.expect(page.locator(".pane:visible")).to_have_count(2 if choice else 1)
            if choice == "pixels":
                page.select_option("#label", "")
                sync_api.expect(page.locator("#compared")).to_have_text("1,536 pixels differ")
                page.select_option("#label", "label")
        page.select_option("#picture", "")
        page.wait_for_timeout(200)
        page.keyboard.press("Escape")
        page.focus("#grid")
        assert page.is_hidden("#detail")


def test_a_link_pasted_into_the_same_tab_is_followed(browser: Any, address: str) -> None:
    with opened(browser, f"{address}#row=10") as page:
        wait(page, "!document.querySelector('#detail').hidden")
        name = page.locator("#key").text_content()
        page.goto(f"{address}#row=11")
        sync_api.expect(page.locator("#key")).not_to_have_text(name)
        assert page.url.endswith("#row=11")


def test_the_raw_file_is_shown_next_to_the_stored_row(browser: Any, tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 2}).path
    pack(raw, tmp_path / "out", "--size", "12x12", "--labels", "index")
    with served(Settings(tmp_path / "out")) as address:
        with opened(browser, f"{address}#row=0") as page:
            compared = page.locator("#compared")
            for way, title, size in (
                ("raw", "raw file", [24, 36]),
                ("again", "raw file, packed again", [12, 12]),
                ("raw-pixels", "label: pixels that differ", [12, 12]),
            ):
                page.select_option("#compare", way)
                sync_api.expect(page.locator(".title >> nth=1")).to_have_text(title)
                assert page.evaluate("view.detail.panes[1].size") == size
                sync_api.expect(compared).to_contain_text("no pixel differs")
                check_access(page)
            page.select_option("#compare", "again")
            sync_api.expect(page.locator(".title >> nth=1")).to_have_text("raw file, packed again")
            assert np.array_equal(over(page), over(page, "over-2"))
            page.locator("#classes input").nth(1).uncheck()
            assert np.array_equal(over(page), over(page, "over-2"))
            box = page.locator(".pane >> nth=1").bounding_box()
            page.mouse.move(box["x"] + box["width"] / 2 + 1, box["y"] + box["height"] / 2 + 1)
            assert "raw file, packed again: " in page.locator("#pixel").text_content()
            page.mouse.wheel(0, -300)
            page.mouse.down()
            page.mouse.move(box["x"] + box["width"] / 2 + 20, box["y"] + box["height"] / 2 + 9)
            page.mouse.up()
            assert np.array_equal(over(page), over(page, "over-2"))
            asked = page.url
            (raw / "train/images/street_001.png").unlink()
            page.click("#after")
            sync_api.expect(compared).to_contain_text("is not there any more")
            assert page.locator(".pane:visible").count() == 1
        with opened(browser, asked, viewport={"width": 390, "height": 844}) as page:
            sync_api.expect(page.locator(".title >> nth=1")).to_have_text("raw file, packed again")
            check_access(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_texture_and_a_canvas_draw_the_same(browser: Any, address: str) -> None:
    drawn = []
    for way in ("?draw=webgl2", "?draw=2d"):
        with opened(browser, f"{address}{way}#row=10&outlines=1") as page:
            wait(page, "view.detail.drawnLayer")
            drawn.append((page.evaluate("view.detail.layer.kind"), over(page).astype(int)))
    (texture, first), (canvas, second) = drawn
    assert canvas == "2d"
    if texture != "webgl2":
        pytest.skip("this browser has no WebGL 2")
    far = (np.abs(first - second) > 6).reshape(-1, 4).any(1)
    assert far.mean() < 0.01  # the edges of hatches and outlines


def test_every_kind_of_field_is_drawn(browser: Any, tmp_path: Path) -> None:
    write_any_pack(tmp_path / "out", "npy")
    with served(Settings(tmp_path / "out")) as address, opened(browser, f"{address}#row=0") as page:
        wait(page, "view.detail.size")
        for field in page.evaluate("view.detail.pack.fields"):
            page.select_option("#picture" if field["kind"] == "picture" else "#label", field["name"])
            page.wait_for_timeout(150)
            assert page.locator("#compared").text_content() == ""
            assert page.is_visible("#window") == (field["kind"] == "values" or field["dtype"] != "|u1") or (
                field["kind"] not in ("picture", "values")
            )
            if field["kind"] == "values":
                before = over(page)
                page.fill("#high", "400")
                assert not np.array_equal(over(page), before)
            if field["kind"] == "picture" and page.is_visible("#window"):
                page.fill("#low", "300")
                page.wait_for_timeout(300)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_everything(scheme: str, browser: Any, address: str) -> None:
    phone = {"viewport": {"width": 360, "height": 700}, "color_scheme": scheme}
    with opened(browser, address, **phone) as page:
        page.wait_for_selector(".cell img[src]")
        page.click("#show-filters")
        assert page.is_visible("#split")
        check_access(page)
        page.click("#show-filters")
        first, second = (page.locator(f"#row-{index}").bounding_box() for index in range(2))
        assert first["y"] == second["y"]
        assert first["x"] + first["width"] <= second["x"]
        page.click(".cell >> nth=1")
        wait(page, "view.detail.drawnLayer")
        check_access(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_report_loads_nothing(browser: Any, made: Path) -> None:
    from packer.report.page import html
    from packer.report.report import make_report

    path = made.parent / "report.html"
    path.write_text(html(make_report(made)), encoding="utf-8")
    with opened(browser, f"file://{path}") as page:
        assert page.locator("img").count() > 3
        check_access(page)
    with opened(browser, f"file://{path}", viewport={"width": 390, "height": 800}, color_scheme="dark") as page:
        check_access(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        ground = "getComputedStyle(document.body).backgroundColor"
        assert page.evaluate(ground) != "rgb(255, 255, 255)"
        page.emulate_media(media="print")
        assert page.evaluate(ground) == "rgb(255, 255, 255)"


def test_generations_of_other_sizes_are_next_to_each_other(browser: Any, tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 2}).path
    for size in ("12x12", "16x20"):
        pack(raw, tmp_path / "out", "--size", size, "--labels", "index")
    with served(Settings(tmp_path / "out", 1)) as address, opened(browser, f"{address}#row=1&compare=other") as page:
        sync_api.expect(page.locator(".title >> nth=1")).to_have_text("generation 1")
        assert page.evaluate("view.detail.seen.map((pane) => pane.size)") == [[16, 20], [12, 12]]
        page.select_option("#compare", "pixels")
        sync_api.expect(page.locator("#compared")).to_have_text("the sizes differ, so no pixels can be compared")
        assert page.locator(".pane:visible").count() == 1


def test_classes_of_a_volume_have_their_share_of_all_slices(browser: Any, tmp_path: Path) -> None:
    for folder in ("images", "labels"):
        pages = [Image.fromarray(np.full((8, 8), page % 2, np.uint8)) for page in range(6)]
        (tmp_path / "raw" / folder).mkdir(parents=True)
        pages[0].save(tmp_path / "raw" / folder / "a.tif", save_all=True, append_images=pages[1:])
    pack(tmp_path / "raw", tmp_path / "out", "--volumes", "--classes", "2")
    with served(Settings(tmp_path / "out")) as address, opened(browser, f"{address}#row=0") as page:
        shares = page.locator("#classes span", has_text="%")
        sync_api.expect(shares.first).to_be_visible()
        assert shares.all_text_contents() == ["50.0 %", "50.0 %"]


def test_three_planes_of_a_volume_have_the_proportions_of_the_world(browser: Any, tmp_path: Path) -> None:
    nibabel = pytest.importorskip("nibabel")
    sides = 24, 96, 80
    image = np.arange(np.prod(sides), dtype=np.int16).reshape(sides) % 500
    label = np.zeros(sides, np.uint8)
    label[16, 10:20, 5:9] = 1
    for folder, numbers in (("images", image), ("labels", label)):
        (tmp_path / "raw" / folder).mkdir(parents=True)
        affine = np.array([[-1, 0, 0, 40], [0, 1, 0, -50], [0, 0, 4, 10], [0, 0, 0, 1.0]])
        nibabel.save(nibabel.Nifti1Image(numbers.T, affine), tmp_path / "raw" / folder / "a.nii.gz")
    build_pack(tmp_path / "raw", tmp_path / "out", volumes=True, classes="2", bands="all", workers=1)
    planes = "view.detail.panes.map((pane) => [pane.size, pane.ratio, pane.title.textContent, pane.bar.textContent])"
    with served(Settings(tmp_path / "out")) as address, opened(browser, f"{address}#row=0") as page:
        wait(page, "view.detail.panes[2].drawn")
        assert page.evaluate(planes) == [
            [[96, 80], 1, "slice 12 of 24 · → L ↓ A", "20 mm"],
            [[24, 80], 4, "row 48 of 96 · → L ↓ S", "20 mm"],
            [[24, 96], 4, "column 40 of 80 · → A ↓ S", "20 mm"],
        ]
        before = over(page, "over")
        page.locator("#plane-0").fill("16")
        wait(page, "view.detail.panes[0].title.textContent.startsWith('slice 16')")
        assert not np.array_equal(over(page, "over"), before)
        page.locator("#stage").focus()
        page.keyboard.press("]")
        wait(page, "view.detail.panes[0].title.textContent.startsWith('slice 17')")
        box = page.locator("#base").bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2 + 1, box["y"] + box["height"] / 2 + 1)
        sync_api.expect(page.locator("#pixel")).to_have_text("40, 48, 17 · 0, -2, 78 mm · class_0")
        check_access(page)
