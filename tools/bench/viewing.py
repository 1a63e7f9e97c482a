"""Seconds until `packer view` shows a pack, until a class is toggled, and the memory that scrolling takes.

    tools/run bench.viewing OUT [--thumbnails 100000]

It needs Playwright and /usr/bin/chromium. `first screen` is from opening the address to the last thumbnail of the first
screen, in a browser that runs, before the counts of all rows are merged. `toggle` is the median of twenty toggles of
a class of a made label of 2048x2048, from the click to the pixels, which are read back. Memory is that of the page's
JavaScript and of the server's own pages, while so many thumbnails are scrolled through, and then after jumping through
the whole pack, which opens all of its shards.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from playwright.sync_api import Page, sync_playwright
from program import parser

from packer import Rows, build_pack

SIDE, CLASSES, TOGGLES = 2048, 19, 20
JUMPS = 1000
CHROMIUM = "/usr/bin/chromium"
OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking")
SEEN = """() => { const cells = [...document.querySelectorAll(".cell:not([hidden]) img")];
  return cells.length > 0 && cells.every((image) => image.complete && image.naturalWidth > 0); }"""
TOGGLE = """() => { const began = performance.now(), box = document.querySelectorAll("#classes input")[1];
  box.click();
  const over = document.getElementById("over"), gl = view.detail.layer.gl;
  if (gl) gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4));
  else over.getContext("2d").getImageData(0, 0, 1, 1);
  return performance.now() - began; }"""


def main() -> None:
    options = parser(__doc__)
    options.add_argument("out", type=Path)
    options.add_argument("--thumbnails", type=int, default=100_000)
    chosen = options.parse_args()
    with sync_playwright() as playwright, TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(OPTIONS))
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto("about:blank")
        with served(chosen.out) as (address, process):
            began = time.perf_counter()
            page.goto(address)
            while not page.evaluate(SEEN):
                time.sleep(0.005)
            print(f"first screen                {time.perf_counter() - began:6.2f} s")
            scroll(page, process, chosen.thumbnails)
        rows = Rows(["row"], make_row)
        build_pack(rows, Path(folder) / "out", classes=CLASSES, labels="index", workers=1)
        for way in ("", "?draw=webgl2"):
            with served(Path(folder) / "out") as (address, _):
                page.goto(f"{address}{way}#row=0")
                while not page.evaluate("() => Boolean(window.view?.detail.drawnLayer)"):
                    time.sleep(0.05)
                seconds = [page.evaluate(TOGGLE) for _ in range(TOGGLES)]
                kind = page.evaluate("() => view.detail.layer.kind")
                print(f"toggle, {kind:<19} {statistics.median(seconds):6.1f} ms, at most {max(seconds):.1f}")
        browser.close()


def make_row(key: str) -> dict[str, Any]:
    """Return a row of 2048x2048 with patches of 16 pixels."""
    dice = np.random.default_rng(0)
    label = dice.integers(0, CLASSES, (SIDE // 16, SIDE // 16), np.uint8).repeat(16, 0).repeat(16, 1)
    return {"image": np.full((SIDE, SIDE, 3), 90, np.uint8), "label": label}


@contextmanager
def served(out: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Serve a pack in a process of its own."""
    command = [sys.executable, "-m", "packer", "view", str(out), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process
        finally:
            process.terminate()


def scroll(page: Page, process: subprocess.Popen[str], thumbnails: int) -> None:
    """Scroll screen by screen, so that every thumbnail is asked for, then jump through all shards. Print the memory."""
    columns = page.evaluate("() => view.grid.columns")
    screen = page.evaluate("() => view.grid.box.clientHeight")
    screens = max(1, thumbnails // (columns * max(1, screen // 228)))
    for number in range(screens + 1):
        show(page, f"{number} * {screen}")
        if number in (screens // 10, screens // 2, screens):
            print_memory(page, process, f"after {number:6,} screens")
    for jump in range(JUMPS + 1):
        show(page, f"view.grid.height * {jump} / {JUMPS}")
    print_memory(page, process, f"after {JUMPS:6,} jumps")


def show(page: Page, top: str) -> None:
    """Scroll to a position, a JavaScript expression, and wait for the thumbnails."""
    page.evaluate(f"() => {{ view.grid.box.scrollTop = {top}; view.grid.draw(); }}")  # now, not with the next frame
    while not page.evaluate(SEEN):
        time.sleep(0.002)


def print_memory(page: Page, process: subprocess.Popen[str], when: str) -> None:
    """Print the memory of the page and of the server, without mapped files."""
    page.request_gc()
    heap = page.evaluate("() => performance.memory.usedJSHeapSize") / 2**20
    nodes = page.evaluate("() => document.querySelectorAll('*').length")
    own = int(re.findall(r"RssAnon:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())[0]) / 1024
    print(f"{when}: page {heap:5.1f} MiB, {nodes} elements; server {own:5.0f} MiB", flush=True)
