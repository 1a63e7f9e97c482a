"""The docs are true: the help page is fresh, shown output is real output, snippets run, links fit the site."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from checks import cli_page, console_blocks
from conftest import REPO, RawFolder, make_raw, pack, run_script
from program import command

from packer.config.options import OPTIONS

RAW = REPO / "data_samples" / "raw"
README = (REPO / "README.md").read_text()
MOST_WORDS = 45_500
SCRIPT = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_page_of_the_command_line_is_fresh() -> None:
    assert cli_page.PAGE.read_text() == cli_page.page(), "run: tools/run checks.cli_page"


@pytest.mark.parametrize("name", console_blocks.PAGES)
def test_shown_output_is_what_the_commands_print(name: str) -> None:
    text = (REPO / name).read_text()
    assert "```console" in text
    fresh = console_blocks.fresh(text)
    assert console_blocks.comparable(fresh) == console_blocks.comparable(text), "run: tools/run checks.console_blocks"


def test_output_that_changed_is_found() -> None:
    page = "```console\n$ echo one; echo two\none\n```\n"
    assert console_blocks.fresh(page) == page.replace("one\n```", "one\ntwo\n```")
    cut = page.replace("one\n```", "zero\n…\n```")
    assert console_blocks.fresh(cut) == cut.replace("zero", "one")


def test_the_readme_is_a_front_page() -> None:
    assert len(README.splitlines()) <= 160
    for words in ("download.pytorch.org/whl/cpu", "HashiCorp", "python -m packer", "segpack", "Take npy"):
        assert words in README, words


def test_the_pages_stay_short() -> None:
    """A reader needs the words for other things: all pages once had 99,000. cli.md is generated."""
    pages = [*(REPO / "docs").rglob("*.md"), *REPO.glob("*.md"), REPO / "readers" / "contract" / "FORMAT.md"]
    written = [path for path in pages if path != cli_page.PAGE]
    words = [word for path in written for word in path.read_text().split() if any(map(str.isalnum, word))]
    assert len(words) < MOST_WORDS
    assert len((REPO / "CHANGELOG.md").read_text().splitlines()) <= 60


def test_the_second_name_of_the_command_is_installed() -> None:
    assert "segpack = packer.__main__:main" in (REPO / "setup.cfg").read_text()


def test_the_snippets_of_the_guide_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each page is run from top to bottom, next to a pack called `out`."""
    pack(RAW, tmp_path / "out", "--size", "32x48")
    run_script(snippets("loading.md"), tmp_path, monkeypatch)


def test_the_snippet_about_live_packs_runs(tmp_path: Path) -> None:
    (tmp_path / "raw").symlink_to(RAW)
    code = snippets("live.md").replace("256, 384", "32, 48").replace("...", "print(len(images))")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert sum(map(int, done.stdout.split())) == 18


def test_the_snippet_of_the_python_api_runs(raw_folder: RawFolder, tmp_path: Path) -> None:
    (tmp_path / "raw").symlink_to(raw_folder.path)
    (tmp_path / "nvme").mkdir()
    (tmp_path / "page.py").write_text(snippets("python.md").replace("(512, 512)", "(16, 16)"))
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}  # staged copies are listed there
    done = subprocess.run(
        [sys.executable, "page.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "('train', (" in done.stdout


def test_the_snippets_about_arrays_run(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    with h5py.File(tmp_path / "cells.h5", "w") as file:
        file["images"] = rng.integers(0, 256, (20, 16, 24, 3), np.uint8)
        file["labels"] = rng.integers(0, 2, (20, 16, 24), np.uint8)
        file["changed"] = np.arange(20)
    text = (REPO / "docs" / "guide" / "sources.md").read_text()
    module, page, night = (code for kind, code in SCRIPT.findall(text) if kind == "python")
    (tmp_path / "cells.py").write_text("\n".join([module, night.partition("\n\n\n")[0]]))
    (tmp_path / "page.py").write_text("\n".join([page, "from cells import version", night.partition("\n\n\n")[2]]))
    (tmp_path / "arrays").mkdir()
    with h5py.File(tmp_path / "cells.h5") as file:
        np.save(tmp_path / "arrays" / "images.npy", file["images"][:].transpose(0, 3, 1, 2))
        np.save(tmp_path / "arrays" / "labels.npy", file["labels"][:])
        tensors = {name: torch.from_numpy(file[name][:]) for name in ("images", "labels")}
    torch.save({"train": tensors}, tmp_path / "cells.pt")
    np.save(tmp_path / "arrays" / "names.npy", [f"cell {row}" for row in range(20)])
    commands = "\n".join(code for kind, code in SCRIPT.findall(text) if kind == "bash")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-euc", commands], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "packed: generation 1, 20 rows" in done.stdout
    done = subprocess.run([sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("20 ()\n", "")


CELLS = """
import numpy as np
keys, unlabelled = ["a", "b", "c"], ["b"]

def load(key):
    image, label = np.zeros((8, 8, 3), np.uint8), np.ones((8, 8), np.uint8)
    return {"image": image} if key in unlabelled else {"image": image, "label": label}
"""


def test_the_snippets_about_pictures_without_labels_run(raw_folder: RawFolder, tmp_path: Path) -> None:
    raw = Path(shutil.copytree(raw_folder.path, tmp_path / "raw"))
    for label in sorted((raw / "train" / "masks").iterdir())[::3]:
        label.unlink()
    pack(raw, tmp_path / "out", "--missing", "keep")
    (tmp_path / "cells.py").write_text(CELLS)
    (tmp_path / "page.py").write_text(snippets("unlabelled.md"))
    done = subprocess.run([sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.usefixtures("in_process")
def test_the_snippets_about_tiles_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = make_raw(tmp_path / "raw", {"val": 2}, height=40, width=60)
    pack(raw.path, tmp_path / "tiles", "--fit", "tile", "--size", "32x32", "--overlap", "8")
    capsys.readouterr()
    run_script(snippets("sizes.md"), tmp_path, monkeypatch)
    assert capsys.readouterr().out == "street_000 (40, 60)\nstreet_001 (40, 60)\n"
    assert np.load(tmp_path / "street_001.npy").shape == (40, 60)


def snippets(page: str) -> str:
    """Return the Python of a page of the guide, with what it expects the user to have."""
    text = (REPO / "docs" / "guide" / page).read_text()
    own = "def my_joint_transform(image, label):\n    return image, label\nmy_augment = my_joint_transform\n"
    small = [code for kind, code in SCRIPT.findall(text) if kind == "python"]
    return "\n".join([own, *small]).replace("batch_size=16", "batch_size=4").replace("num_workers=2", "num_workers=0")


def test_every_page_is_on_the_site() -> None:
    config = (REPO / "mkdocs.yml").read_text()
    listed = set(re.findall(r": (\S+\.md)$", config, re.MULTILINE))
    pages = {path.relative_to(REPO / "docs").as_posix() for path in (REPO / "docs").rglob("*.md")}
    assert listed - pages == {"index.md", "FORMAT.md", "CONTRIBUTING.md", "CHANGELOG.md"}
    assert pages <= listed


def test_the_site_is_strict_and_needs_no_network() -> None:
    config = (REPO / "mkdocs.yml").read_text()
    assert "\nstrict: true\n" in config
    assert "\n  font: false\n" in config
    assert "://" not in config


def test_programs_and_files_that_the_docs_name_exist() -> None:
    for page in [REPO / "README.md", REPO / "CONTRIBUTING.md", *(REPO / "docs").rglob("*.md")]:
        text = page.read_text()
        for program in re.findall(r"tools/run ([a-z_]+(?:\.[a-z_]+)*)", text):
            path = REPO / "tools" / program.replace(".", "/")
            assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file(), f"{page}: {program}"
        for name in re.findall(r"`((?:packer|readers|tools|tests|docs)/[\w/]+\.(?:py|md|json))`", text):
            if "NAME" not in name:
                assert (REPO / name).is_file(), f"{page}: {name}"


def test_pages_that_the_help_names_exist() -> None:
    names = {name for option in OPTIONS.values() for name in re.findall(r"docs/[\w/]+\.md", option.help)}
    assert len(names) > 4
    assert [name for name in names if not (REPO / name).is_file()] == []


PICTURE = re.compile(r"!\[[^\]]*\]\(([^)]+)\)")
LARGEST = 200_000


def test_pictures_are_small_and_drawn_by_make() -> None:
    """Pictures of measurements are drawn by the programs that their pages name, all others by `make pictures`."""
    shown = set()
    for page in [REPO / "README.md", *(REPO / "docs").rglob("*.md")]:
        for name in PICTURE.findall(page.read_text()):
            path = (page.parent / name).resolve()
            assert path.stat().st_size < LARGEST, f"{page}: {name}"
            shown.add(path)
    ours = {path for path in shown if path.parent == REPO / "docs"}
    assert ours == {*(REPO / "docs").glob("*.jpg"), *(REPO / "docs").glob("*.png")}
    assert "\npictures: picture " in (REPO / "Makefile").read_text()
    programs = "".join((REPO / "tools" / name).read_text() for name in ("picture.py", "pictures.py"))
    assert [path.name for path in ours if not re.search(rf'"{path.stem}(\.\w+)?"', programs)] == []


@pytest.mark.long
def test_the_pictures_are_drawn_again(tmp_path: Path) -> None:
    done = subprocess.run(command("pictures", "--out", tmp_path), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    drawn, ours = ({path.name for path in folder.glob("*.jpg")} for folder in (tmp_path, REPO / "docs"))
    assert drawn <= ours
    assert drawn == ours or "stay as they are" in done.stdout
    assert {"sheet.jpg", "mistakes_shifted.jpg"} <= drawn


WORD = re.compile(r"^\| (`[^|]*) \| [^|]* \| ([^|]*\.py) \|$", re.MULTILINE)


def test_the_words_and_laws_of_the_architecture_are_in_the_code() -> None:
    page = (REPO / "docs" / "architecture.md").read_text()
    assert len(page.splitlines()) <= 120
    table = WORD.findall(page)
    assert len(table) > 20
    for words, paths in table:
        folder, code = REPO, ""
        for name in paths.split(", "):
            path = REPO / name if "/" in name else folder / name
            folder, code = path.parent, code + path.read_text()
        for word in re.findall(r"`(\w+)`", words):
            assert re.search(rf"^class {word}\b", code, re.MULTILINE), f"{word} is not in {paths}"
    for test in set(re.findall(r"tests/test_\w+\.py", page)):
        assert (REPO / test).is_file(), test
