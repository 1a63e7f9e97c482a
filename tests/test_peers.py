"""The benchmark against others: it runs in short, and what it needs is pinned."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPO

BENCH = REPO / "tools" / "bench"
REQUIREMENTS = (BENCH / "peers-requirements.txt").read_text()


def contenders() -> list[tuple[str, str]]:
    """File and package of each, without loading any of them."""
    table = (BENCH / "contenders" / "__init__.py").read_text()
    return re.findall(r'Entry\("[^"]+", "(\w+)", "([\w-]+)"', table)


def bench(*options: str) -> subprocess.CompletedProcess[str]:
    """Run it as a user would, with the code of this checkout."""
    command = [sys.executable, "-m", "bench.peers", *options]
    environment = {**os.environ, "PYTHONPATH": f"{REPO / 'tools'}:{REPO}"}
    return subprocess.run(command, cwd=REPO, env=environment, capture_output=True, text=True, check=False)


def test_every_contender_has_a_file_and_every_file_is_a_contender() -> None:
    files = {path.stem for path in (BENCH / "contenders").glob("*.py")}
    assert {file for file, _ in contenders()} == files - {"__init__", "pairs", "raw"}


@pytest.mark.parametrize("package", sorted({package for _, package in contenders()} - {"segpack"}))
def test_every_contender_is_pinned(package: str) -> None:
    assert re.search(rf"^{package}==[\w.]+$", REQUIREMENTS, re.MULTILINE)


def test_what_constraints_pin_too_is_pinned_alike() -> None:
    constraints = {line.partition(";")[0] for line in (REPO / "constraints.txt").read_text().splitlines()}
    names = {line.partition("==")[0] for line in constraints}
    for line in REQUIREMENTS.splitlines():
        assert line in constraints or line.partition("==")[0] not in names, line


def test_raw_files_and_our_loader_deliver_the_same_bytes(tmp_path: Path) -> None:
    done = bench("--pairs", "16", "--rounds", "1", "--keep", str(tmp_path), "--only", "opencv,ffcv")
    assert done.returncode == 0, done.stderr
    proofs = re.findall(r"^  (.+?) {2,}(Proof\(.+\)) as expected$", done.stderr, re.MULTILINE)
    assert [name for name, _ in proofs][:2] == ["loader, npy", "raw PNG, OpenCV, 2 workers"]
    assert len({proof for _, proof in proofs}) == 1
    for name in ("copy loop, all cores", "loader, npy", "raw PNG, OpenCV, 2 workers"):
        assert re.search(rf"^\| {name} +\| \d+ \(\d+ to \d+\)", done.stdout, re.MULTILINE), done.stdout
    # Whoever is not installed is left out in so many words.
    assert re.search(r"^\| FFCV|^FFCV: not measured: ModuleNotFoundError", done.stdout, re.MULTILINE)


def test_a_contender_that_nobody_knows_is_refused() -> None:
    done = bench("--only", "opencv,tape")
    assert done.returncode == 1
    assert "--only tape: expected some of segpack, formats, opencv" in done.stderr
