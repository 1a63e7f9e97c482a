"""The bench of reading next to other libraries runs in its short form, and the libraries are pinned."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from conftest import REPO
from program import command

BENCH = REPO / "tools" / "bench"
REQUIREMENTS = (BENCH / "peers-requirements.txt").read_text()


def libraries() -> list[tuple[str, str]]:
    """Return the file and the package of each library without importing any."""
    table = (BENCH / "libraries" / "__init__.py").read_text()
    return re.findall(r'Library\("[^"]+", "(\w+)", "([\w-]+)"', table)


def bench(*options: str) -> subprocess.CompletedProcess[str]:
    """Run it as a user would."""
    return subprocess.run(command("bench.reading_peers", *options), capture_output=True, text=True, check=False)


def test_every_library_has_a_file_and_every_file_a_library() -> None:
    files = {path.stem for path in (BENCH / "libraries").glob("*.py")}
    assert {file for file, _ in libraries()} == files - {"__init__", "raw"}


@pytest.mark.parametrize("package", sorted({package for _, package in libraries()} - {"segpack"}))
def test_every_library_is_pinned(package: str) -> None:
    assert re.search(rf"^{package}==[\w.]+$", REQUIREMENTS, re.MULTILINE)


def test_pins_agree_with_the_constraints() -> None:
    constraints = {line.partition(";")[0] for line in (REPO / "constraints.txt").read_text().splitlines()}
    names = {line.partition("==")[0] for line in constraints}
    for line in REQUIREMENTS.splitlines():
        assert line in constraints or line.partition("==")[0] not in names, line


@pytest.mark.long
def test_raw_files_and_our_loader_deliver_the_same_bytes(tmp_path: Path) -> None:
    done = bench("--pairs", "16", "--rounds", "1", "--keep", str(tmp_path), "--only", "opencv,ffcv")
    assert done.returncode == 0, done.stderr
    proofs = re.findall(r"^  (.+?) {2,}(Proof\(.+\)) as expected$", done.stderr, re.MULTILINE)
    names = [name for name, _ in proofs][:3]
    assert names == ["loader, npy", "memcpy, 1 thread", "raw PNG, OpenCV, 2 workers"]
    assert len({proof for _, proof in proofs}) == 1
    for name in ("copy loop, .+?", *names):
        assert re.search(rf"^\| {name} +\| \d+ \(\d+ to \d+\)", done.stdout, re.MULTILINE), done.stdout
    # A library that is not installed is reported.
    assert re.search(r"^\| FFCV|^FFCV: not measured: ModuleNotFoundError", done.stdout, re.MULTILINE)


def test_an_unknown_library_is_refused() -> None:
    done = bench("--only", "opencv,tape")
    assert done.returncode == 1
    assert "--only tape: expected some of segpack, formats, opencv" in done.stderr
