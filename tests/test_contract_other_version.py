"""A pack of another version of the format: every command refuses it with what to do, and changes nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from conftest import RawFolder, run

from readers import VersionError, open_dataset
from readers.contract.json_entry import fingerprint

COMMANDS = (
    ("info",),
    ("verify",),
    ("gc",),
    ("log",),
    ("repair",),
    ("rollback", "1"),
    ("stage", "."),
    ("stats",),
    ("bench",),
    ("sheet",),
    ("show", "street_000"),
)


@pytest.fixture
def older(packed: Path, tmp_path: Path) -> Path:
    """Give a pack the number of the version before, and a checksum that fits."""
    out = Path(shutil.copytree(packed, tmp_path / "older"))
    for path in (out / "manifest.json", *out.glob("generations/*.json")):
        document = json.loads(path.read_text())
        document["version"] -= 1
        document["checksum"] = fingerprint({key: value for key, value in document.items() if key != "checksum"})
        path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    return out


def contents(folder: Path) -> dict[Path, bytes]:
    """Return all files but the lock and the stamps, which `diff` completes for files that were young."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path: path.read_bytes() for path in files if path.name != ".lock" and path.parent.name != "stamps"}


def test_every_command_refuses_it_and_changes_nothing(older: Path, raw_folder: RawFolder) -> None:
    before = contents(older)
    commands = [(name, older, *rest) for name, *rest in COMMANDS]
    for command in [*commands, ("build", raw_folder.path, older), ("diff", raw_folder.path, older)]:
        result = run(*command)
        assert result.exit_code == 1, (command, result.output)
        assert "has version 1 of the format" in result.output, command
        assert "build it again into another folder" in result.output, command
    assert contents(older) == before
    with pytest.raises(VersionError, match="version 1 of the format"):
        open_dataset(older)
