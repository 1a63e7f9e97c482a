"""Everything that a command prints is escaped: names from files cannot send a terminal commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result
from conftest import REPO, json_of, make_raw, pack, run

from packer.cli.output import show
from readers.contract.manifest import Manifest, generation_path

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\u202egnp.\rroad"
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")
COMMANDS = (
    ("info", "OUT"),
    ("info", "--json", "OUT"),
    ("log", "OUT"),
    ("log", "--json", "OUT"),
    ("stats", "OUT"),
    ("show", "OUT", "street_002", "--colours", "none"),
    ("sheet", "OUT", "-n", "2", "-o", "SHEET"),
    ("stats", "--json", "OUT"),
    ("verify", "--deep", "OUT"),
    ("verify", "--json", "OUT"),
    ("diff", "OUT", "RAW"),
    ("diff", "--json", "OUT", "RAW"),
    ("gc", "--json", "OUT"),
    ("bench", "--seconds", "1", "--threads", "1", "--batch", "2", "--workers", "0", "OUT"),
    ("stage", "OUT", "COPY"),
    ("rollback", "OUT", "1"),
    ("repair", "OUT", "RAW"),
    ("probe", "--workers", "1", "RAW"),
    ("probe", "--workers", "1", "--json", "RAW"),
    ("build", "--dry-run", "--classes", "CLASSES", "RAW", "OUT"),
    ("build", "--dry-run", "--json", "--classes", "CLASSES", "RAW", "OUT"),
    ("build", "--print-config", "--classes", "CLASSES", "RAW", "OUT"),
    ("build", "--on-bad", "skip", "--workers", "1", "--classes", "CLASSES", "RAW", "OUT"),
)


@pytest.fixture(scope="module")
def _names_of_older_versions() -> Iterator[None]:
    """Take names of classes that tables must not have: packs of older versions have them."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("class_row", "load"):
            patch.setattr(f"packer.classes.{module}.odd_character", lambda name: None)
        yield


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, _names_of_older_versions: None) -> dict[str, Path]:
    """A pack with hostile names of classes and pictures, in its recipe and in `created`."""
    root = tmp_path_factory.mktemp("hostile")
    raw = make_raw(root / "raw", {"train": 6, "val": 2}).path
    table = (raw / "class_dict.csv").read_text().splitlines()
    name = table[1].split(",")[0]
    classes = root / "classes.csv"
    classes.write_text("\n".join(table).replace(name, HOSTILE.replace("\r", ""), 1) + "\n")
    (raw / "class_dict.csv").unlink()
    for kind in ("images", "masks"):
        (raw / "train" / kind / "street_000.png").rename(raw / "train" / kind / "a\u202egnp.png")
        (raw / "train" / kind / "street_001.png").write_bytes(b"damaged")
    pack(raw, root / "out", "--classes", classes, "--on-bad", "skip")
    manifest = Manifest.load(root / "out")
    text = replace(manifest, created=HOSTILE, recipe={**manifest.recipe, "fields": HOSTILE}).to_text()
    (root / "out/manifest.json").write_text(text)
    generation_path(root / "out", 1).write_text(text)
    return {"SHEET": root / "s.png", "RAW": raw, "OUT": root / "out", "COPY": root / "copy", "CLASSES": classes}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_prints_nothing_that_a_terminal_obeys(folders: dict[str, Path], command: tuple[str, ...]) -> None:
    if command[0] == "stage":
        folders["COPY"].mkdir(exist_ok=True)
    done: Result = run(*(folders.get(word, word) for word in command))
    damaged = command[0] in ("verify", "stage")  # the receipts are those of another recipe
    assert done.exit_code == (4 if damaged else 0), done.stderr
    assert done.stdout or done.stderr
    assert not OBEYED.search(done.stdout + done.stderr), done.stdout + done.stderr


def test_the_pack_of_this_test_is_hostile(folders: dict[str, Path]) -> None:
    manifest = Manifest.load(folders["OUT"])
    assert "\x1b]0;owned" in manifest.classes.names[0]
    shown = run("info", folders["OUT"]).stdout
    assert "\\u001b]0;owned" in shown
    assert json_of("info", "--json", folders["OUT"]) == manifest.to_json()


def test_only_output_prints() -> None:
    for path in (REPO / "packer").rglob("*.py"):
        if path.name not in ("output.py", "library_process.py"):  # the second answers its parent, through a pipe
            assert not re.search(r"click\.s?echo|(?<!\w)print\(|sys\.std(out|err)\.write", path.read_text()), path


def test_a_name_that_is_not_utf8_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    show("a\udcff")
    assert capsys.readouterr().out == "a\\udcff\n"
