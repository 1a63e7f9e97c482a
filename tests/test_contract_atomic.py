"""Atomic writes: the old file or the new one, no leftovers, ordinary permissions."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import ended

from packer.errors import TargetError
from packer.publish.atomic import remove_partials, write_atomic
from readers.contract import atomic
from readers.contract.leftovers import sweep


@pytest.mark.parametrize("data", ["schön\n", b"\x00\xff"])
def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path: Path, data: str | bytes) -> None:
    path = tmp_path / "a.json"
    path.write_text("old")
    write_atomic(path, data)
    assert path.read_bytes() == (data if isinstance(data, bytes) else data.encode())
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_the_permissions_are_those_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    write_atomic(tmp_path / "new", "text")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("call", ["fsync", "open"])
def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "a.json"
    path.write_text("old")
    monkeypatch.setattr("readers.contract.atomic.os.fsync" if call == "fsync" else "pathlib.Path.open", full)
    with pytest.raises(TargetError, match=r"a\.json: cannot be written \(No space left on device\)"):
        write_atomic(path, "new")
    with pytest.raises(OSError, match="No space"):
        atomic.write_atomic(path, "new")
    monkeypatch.undo()
    assert path.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize(
    ("owner", "call", "is_done"),
    [(Path, "mkdir", True), (Path, "rmdir", False), (shutil, "rmtree", False)],
)
def test_a_signal_while_the_private_folder_is_made_or_deleted_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, call: str, is_done: bool
) -> None:
    """It arrives after the folder was made, or before it is deleted."""
    interrupt_first(monkeypatch, owner, call, is_done)

    def write() -> None:
        with atomic.partial(tmp_path) as new:
            if call == "rmtree":
                new.write_text("not moved")

    with pytest.raises(KeyboardInterrupt):
        write()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("owner", "call", "is_done", "left"),
    [(os, "fsync", True, "old"), (Path, "replace", False, "old"), (Path, "replace", True, "new")],
)
def test_a_signal_while_a_file_is_written_leaves_the_old_one_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, call: str, is_done: bool, left: str
) -> None:
    (tmp_path / "a.json").write_text("old")
    interrupt_first(monkeypatch, owner, call, is_done)
    with pytest.raises(KeyboardInterrupt):
        atomic.put_in_place(tmp_path / "a.json", "new")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.json": left}


def interrupt_first(monkeypatch: pytest.MonkeyPatch, owner: Any, call: str, is_done: bool) -> None:
    """Let a signal arrive in the first call of a function: after it is done, or before."""
    calls: list[object] = []
    usual = getattr(owner, call)

    def interrupted(*arguments: Any, **options: Any) -> Any:
        calls.append(arguments)
        if len(calls) > 1:
            return usual(*arguments, **options)
        if is_done:
            usual(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, call, interrupted)


NAMED = """
import sys
from pathlib import Path
from readers.contract.atomic import partial_path
partial_path(Path(sys.argv[1]), int(sys.argv[2]), "theirs").mkdir()
"""


@pytest.mark.parametrize("is_file", [False, True])
def test_unfinished_files_are_swept_if_their_process_ended_here_or_if_they_are_old(
    tmp_path: Path, is_file: bool
) -> None:
    private = {
        "of a process that ended": atomic.partial_path(tmp_path, ended(), "0"),
        "of this process": atomic.partial_path(tmp_path, os.getpid(), "1"),
        "of another machine": tmp_path / f"{atomic.PARTIAL}{'0' * 16}-{ended()}-2",
        "of another version": tmp_path / f"{atomic.PARTIAL}{ended()}-3",
        "old": tmp_path / f"{atomic.PARTIAL}{'0' * 16}-1-4",
        "old, in work": tmp_path / f"{atomic.PARTIAL}{'0' * 16}-1-5",
    }
    for path in private.values():
        if is_file:
            path.touch()
        else:
            path.mkdir()
    if not is_file:
        (private["old, in work"] / "new").touch()
    for name in ("old", "old, in work"):
        os.utime(private[name], (0, 0))
    sweep(tmp_path)
    left = {name for name, path in private.items() if path.exists()}
    in_work = set() if is_file else {"old, in work"}
    assert left == {"of this process", "of another machine", "of another version", *in_work}


@pytest.mark.parametrize("namespace", ["-u", "-p"])
def test_containers_of_one_host_do_not_sweep_each_other(tmp_path: Path, namespace: str) -> None:
    """Another host name, or the same one with ids of its own: an id says nothing there."""
    rename = "hostname other && " if namespace == "-u" else ""
    script = f'{rename}exec "$0" -c "$1" "$2" "$3"'
    unshared = ["unshare", "-f", namespace, "sh", "-c", script, sys.executable, NAMED, str(tmp_path), str(ended())]
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-f", namespace, "true"], check=False).returncode:
        pytest.skip("unshare is not allowed here")
    subprocess.run(unshared, check=True)
    (theirs,) = tmp_path.iterdir()
    sweep(tmp_path)
    remove_partials(tmp_path, int(theirs.name.split("-")[2]))
    assert theirs.exists()
