"""One at a time: the second builder leaves at once, and whoever was killed holds nobody up."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from unittest import mock

import pytest
from conftest import HANG, RawFolder, ended, errors_of, pack, run

import packer.workers.run
from packer.building.run_build import build_from
from packer.errors import BusyError, TargetError
from packer.plan.request import request_of
from packer.publish.lock import locked
from packer.publish.target import holds_pack
from packer.workers.in_process import InProcess
from readers.contract.atomic import partial_path
from readers.contract.manifest import LOCK

HOLDER = """
import sys, time
from pathlib import Path
from packer.publish.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def holder(out: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(out)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_the_second_exits_75_at_once_and_says_who_holds_it(raw_folder: RawFolder, tmp_path: Path) -> None:
    out = pack(raw_folder.path, tmp_path / "out")
    before = (out / "manifest.json").read_bytes()
    first = holder(out)
    errors = errors_of(75, "build", "--labels", "index", raw_folder.path, out)
    assert first.poll() is None, "it did not wait for the lock"
    assert f"is being changed by process {first.pid} on " in errors
    assert run("repair", out, raw_folder.path).exit_code == 75
    assert run("verify", out).exit_code == 0, "who only reads needs no lock"
    assert run("build", "--dry-run", raw_folder.path, out).exit_code == 0
    assert (out / "manifest.json").read_bytes() == before
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert run("build", "--quiet", raw_folder.path, out).exit_code == 0


def test_a_pack_that_is_not_there_yet_has_one_builder_too(raw_folder: RawFolder, tmp_path: Path) -> None:
    out = tmp_path / "new"
    out.mkdir()
    first = holder(out)
    assert run("build", "--quiet", raw_folder.path, out).exit_code == 75
    first.kill()
    first.communicate()
    assert run("build", "--quiet", raw_folder.path, out).exit_code == 0


def test_four_builders_at_once_give_one_whole_pack(raw_folder: RawFolder, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "packer", "build", "--quiet", "--workers", "1", str(raw_folder.path), str(out)]
    builders = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    codes = [(builder.communicate(timeout=HANG)[1], builder.returncode) for builder in builders]
    assert {code for _, code in codes} <= {0, 75}, codes
    assert any(code == 0 for _, code in codes)
    assert run("verify", out).exit_code == 0
    assert not list(out.rglob(".partial-*"))


def is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def test_no_worker_inherits_the_lock(tmp_path: Path) -> None:
    with locked(tmp_path):
        lock = (tmp_path / LOCK).stat()
        held = [number for number in range(3, 256) if is_open(number)]
        mine = [number for number in held if os.path.samestat(os.fstat(number), lock)]
        assert len(mine) == 1
        assert not os.get_inheritable(mine[0])


def test_the_owner_is_written_and_held_twice_is_held_once(tmp_path: Path) -> None:
    with locked(tmp_path):
        owner = json.loads((tmp_path / LOCK).read_text())
        assert owner["process"] == os.getpid()
        with locked(tmp_path):
            pass
        with (tmp_path / LOCK).open() as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with (tmp_path / LOCK).open() as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        (tmp_path / LOCK).write_text("rubbish")
        with pytest.raises(BusyError, match="another process"), locked(tmp_path):
            pass


def test_an_owner_without_a_name_is_waited_for_a_moment(tmp_path: Path) -> None:
    with (tmp_path / LOCK).open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        ending = threading.Timer(0.1, fcntl.flock, (other, fcntl.LOCK_UN))
        ending.start()
        with locked(tmp_path):
            assert json.loads((tmp_path / LOCK).read_text())["process"] == os.getpid()
        ending.join()


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL])
def test_a_file_system_without_locks_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def refuse(file: int, operation: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("packer.publish.lock.fcntl.flock", refuse)
    with pytest.raises(TargetError, match="this file system has no locks"), locked(tmp_path):
        pass


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("theirs")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / LOCK).symlink_to(tmp_path / "theirs")
    with pytest.raises(TargetError), locked(tmp_path / "out"):
        pass
    assert (tmp_path / "theirs").read_text() == "theirs"


def test_what_the_dead_left_is_swept_and_what_others_put_there_is_not(raw_folder: RawFolder, tmp_path: Path) -> None:
    out = pack(raw_folder.path, tmp_path / "out")
    for folder in (out, out / "shards", out / "generations", out / "stamps"):
        left = partial_path(folder, ended(), "0123")
        left.mkdir()
        (left / "new").write_text("half")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "kept").write_text("kept")
    (out / "shards" / ".partial-link").symlink_to(tmp_path / "elsewhere")
    assert run("build", "--quiet", raw_folder.path, out).exit_code == 0
    assert [path.name for path in out.rglob(".partial-*")] == [".partial-link"]
    assert (tmp_path / "elsewhere" / "kept").read_text() == "kept"


def test_a_first_build_holds_its_lock_before_it_plans(raw_folder: RawFolder, tmp_path: Path) -> None:
    """Two first builds of a new folder both did all work: the second shall end at once."""
    out = tmp_path / "out"
    others: list[object] = []

    def build_in_another_process(plan: object) -> None:
        command = [sys.executable, "-m", "packer", "build", "--quiet", str(raw_folder.path), str(out)]
        others.append(subprocess.run(command, check=False, capture_output=True, timeout=HANG).returncode)

    with mock.patch.object(packer.workers.run, "POOL", InProcess):
        build_from(request_of(raw_folder.path, out), planned=build_in_another_process)
    assert others == [75]
    assert holds_pack(out)


def test_a_folder_that_was_made_for_the_lock_goes_if_the_plan_is_refused(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    assert run("build", "--quiet", tmp_path / "raw", tmp_path / "out").exit_code == 1
    assert not (tmp_path / "out").exists()
