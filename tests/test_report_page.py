"""A page shows its tables whole, in a real browser."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import HANG

from readers.report.page import page, table

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
HEAD = ("", "batch", "threads", "workers", "samples/s", "least", "most", "MB/s", "of copy", "ms/batch", "memory", "")
ROW = (
    "SlotDataLoader",
    "16",
    "",
    "2",
    "170,289",
    "108,160",
    "203,731",
    "11,160",
    "1.52",
    "0.306",
    "150.0 MiB",
    "recommended",
)
MEASURE = """<script>
const box = document.querySelector(".wide"), sides = box.getBoundingClientRect();
document.title = [box.scrollWidth - box.clientWidth, Math.round(sides.left), Math.round(innerWidth - sides.right),
                  document.documentElement.scrollWidth - innerWidth].join(" ");
</script>"""


@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
@pytest.mark.parametrize(("width", "whole"), [(1200, True), (1600, True), (600, False)])
def test_a_wide_table_is_whole_on_a_usual_screen(width: int, whole: bool, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(page("bench", table(HEAD, [ROW]) + MEASURE))
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", f"--window-size={width},900")
    done = subprocess.run(
        [str(BROWSER), *flags, f"--user-data-dir={tmp_path / 'user'}", (tmp_path / "page.html").as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG,
    )
    found = re.search("<title>(.*?)</title>", done.stdout)
    assert found, done.stderr
    hidden, left, right, beyond = map(int, found[1].split())
    assert (hidden <= 0) == whole, "a narrow screen scrolls the table"
    assert min(left, right) >= 0
    assert abs(left - right) <= 2
    assert beyond <= 0, "the page itself does not scroll sideways"
