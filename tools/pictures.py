"""Draw the pictures of the README and the docs from data_samples: sheets, windows, the report, `packer view`.

    tools/run pictures [--out FOLDER]

Pages are drawn by /usr/bin/chromium with Playwright; without them the pictures of pages stay as they are. The wrong
labels are planted, as `drills.mistakes` does. The same versions draw the same bytes.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from drills.mistakes import KINDS, RECIPES, plant
from PIL import Image
from program import REPO, SAMPLES, parser
from window_sheet import window_sheet

from packer.cli import main as packer
from readers import open_dataset

CHROMIUM = Path("/usr/bin/chromium")
OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking")
SWAPPED = (5, 6)
"""Cars and people."""
SEEN = """() => { const cells = [...document.querySelectorAll(".cell:not([hidden]) img")];
  return cells.length > 0 && cells.every((image) => image.complete && image.naturalWidth > 0); }"""
UNDATED = """() => { document.getElementById("facts").textContent = "24 rows"; }"""
QUALITY = 75


def run(*options: object) -> None:
    """Run a command of the packer."""
    packer(list(map(str, options)), standalone_mode=False)


def packs(folder: Path) -> None:
    """Pack the sample scenes, and once more with each of three kinds of mistakes."""
    run("build", "--quiet", "--labels", "index", "--ignore", "void", SAMPLES, folder / "city")
    data, dice = open_dataset(folder / "city", split="all", label="index"), np.random.default_rng(0)
    for kind, mistake in KINDS.items():
        plant(data, mistake(data, dice, SWAPPED), folder / kind)


def sheets(folder: Path, out: Path) -> None:
    """Draw what needs no browser."""
    run("build", "--quiet", "--labels", "index", SAMPLES, folder / "whole" / "city")
    keys = ("--key", "scene_012", "--key", "scene_003")
    outlines = (*keys, "--outlines", "--opacity", 0.25)
    for name, pack, options in (("sheet", "whole/city", ("-n", 6)), ("mistakes_shifted", "shifted", outlines)):
        run("sheet", folder / pack, *options, "-o", folder / f"{name}.png")
        Image.open(folder / f"{name}.png").save(out / f"{name}.jpg", quality=QUALITY, optimize=True)
    data = open_dataset(folder / "whole" / "city", split="train", label="index")
    window_sheet(data).save(out / "windows.jpg", quality=QUALITY, optimize=True)


def pages(folder: Path, out: Path) -> None:
    """Draw pages as Chromium shows them."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(OPTIONS))
        page = browser.new_page(viewport={"width": 1000, "height": 700})
        for name, first, last, picture in (
            ("city", "Classes", "Which classes occur together", "report.jpg"),
            ("swapped", "Classes by split", "Which classes occur together", "mistakes_swapped.jpg"),
        ):
            run("report", "--quiet", folder / name, "-o", folder / f"{name}.html")
            page.goto((folder / f"{name}.html").as_uri())
            shoot_part(page, first, last, out / picture)
        scores = folder / "exchanged-shifts.csv"
        recipe = [sys.executable, str(RECIPES / "label_shifts.py"), str(folder / "exchanged")]
        subprocess.run(recipe, stdout=subprocess.DEVNULL, check=True)
        page.set_viewport_size({"width": 1200, "height": 620})
        with served(folder / "city") as address:
            shoot_grid(page, f"{address}#class=6&sort=share&descending=1", out / "view.jpg")
        with served(folder / "exchanged", "--scores", scores) as address:
            shoot_grid(page, f"{address}#sort=score", out / "mistakes_exchanged.jpg")
        browser.close()


def shoot_part(page: Any, first: str, last: str, picture: Path) -> None:
    """Draw a page from one heading to another."""
    top, bottom = (
        page.locator("h2, h3").get_by_text(heading, exact=True).first.bounding_box()["y"] for heading in (first, last)
    )
    clip = {"x": 0, "y": top - 12, "width": page.viewport_size["width"], "height": bottom - top - 12}
    page.screenshot(path=picture, type="jpeg", quality=QUALITY, full_page=True, clip=clip)


def shoot_grid(page: Any, address: str, picture: Path) -> None:
    """Draw the thumbnails when all are there and sorted."""
    page.goto(address)
    page.wait_for_function("() => document.getElementById('status').textContent.includes('24')")
    page.wait_for_function(SEEN)
    page.evaluate(UNDATED)
    page.screenshot(path=picture, type="jpeg", quality=QUALITY)


@contextmanager
def served(*options: object) -> Iterator[str]:
    """Serve a pack in a process of its own."""
    command = [sys.executable, "-m", "packer", "view", *map(str, options), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--out", type=Path, default=REPO / "docs", metavar="FOLDER", help="default: docs")
    out: Path = options.parse_args().out
    with TemporaryDirectory() as folder:
        packs(Path(folder))
        sheets(Path(folder), out)
        if CHROMIUM.exists() and find_spec("playwright") is not None:
            pages(Path(folder), out)
        else:
            print("without Chromium and Playwright the pictures of pages stay as they are")
