"""Builds that are stopped at random times: a short run of the drill, and the bugs that it found."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import HANG, make_raw, python, run
from drills.processes import default_signals, orphans, start
from drills.signals import drill

from packer.signals import ENDING
from readers.contract.manifest import Manifest

STOP_AFTER_PUBLISHING = """
import os, signal, sys
import packer.{module} as module
publish = module.{name}
def stopped(*arguments, **options):
    manifest = publish(*arguments, **options)
    os.kill(os.getpid(), signal.SIGTERM)
    return manifest
module.{name} = stopped
from packer.__main__ import main
main()
"""
"""A packer that gets SIGTERM right after it has published."""
AT_THE_END = """
import os, signal
from packer.workers.process import Worker
end = Worker.end
def stopped(worker):
    Worker.end = end
    os.kill(os.getpid(), signal.%s)
    end(worker)
Worker.end = stopped
from packer.__main__ import main
main()
"""
"""A packer that gets a signal when all work is done and it ends its workers."""
HELD_UP = """
import os, signal, time
from packer.workers.process import Worker
end = Worker.end
def stopped(worker):
    os.kill(os.getpid(), signal.%s)
    time.sleep(600)
Worker.end = stopped
from packer.__main__ import main
main()
"""
"""A packer that waits for a worker which does not end, and gets a signal whenever it waits."""


def test_builds_stopped_at_any_time_end_in_order_and_can_be_continued() -> None:
    tally = drill("npy", count=5, pairs=6, dice=random.Random(7))
    assert tally.broken == []


def test_a_build_stopped_as_it_publishes_says_that_it_published(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 3})
    stopping = ("-c", STOP_AFTER_PUBLISHING.format(module="building.finish", name="commit"))
    build = start(("build", "--quiet", raw.path, tmp_path / "out"), stopping)
    assert build.communicate(timeout=HANG)[1] == "packer: terminated; everything was published before\n"
    assert build.returncode == 143
    assert run("verify", tmp_path / "out").exit_code == 0
    assert not orphans(build.pid, HANG)
    again = start(("build", "--quiet", raw.path, tmp_path / "out"), stopping)
    assert again.communicate(timeout=HANG)[1] == "packer: terminated; nothing was published\n"


@pytest.mark.parametrize(("first", "word", "code"), [("SIGHUP", "hung up", 129), ("SIGINT", "interrupted", 130)])
def test_a_build_stopped_as_it_ends_its_workers_ends_in_order(tmp_path: Path, first: str, word: str, code: int) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 3})
    build = start(("build", "--quiet", raw.path, tmp_path / "out"), ("-c", AT_THE_END % first))
    assert build.communicate(timeout=HANG)[1] == f"packer: {word}; nothing was published\n"
    assert build.returncode == code
    assert not orphans(build.pid, HANG)
    assert list((tmp_path / "out" / "shards").glob("*.receipt.json"))


@pytest.mark.parametrize(("kind", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_a_second_signal_ends_a_build_at_once(tmp_path: Path, kind: str, code: int) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 3})
    build = start(("build", "--quiet", raw.path, tmp_path / "out"), ("-c", HELD_UP % kind))
    assert build.communicate(timeout=HANG)[1] == ""
    assert build.returncode == code
    assert not orphans(build.pid, HANG)


def test_a_rollback_stopped_as_it_publishes_says_that_it_published(tmp_path: Path) -> None:
    raw, out = make_raw(tmp_path / "raw", {"train": 3}), tmp_path / "out"
    for labels in ("index", "onehot"):
        assert run("build", "--quiet", "--labels", labels, raw.path, out).exit_code == 0
    stopping = ("-c", STOP_AFTER_PUBLISHING.format(module="packs.generations", name="rollback_pack"))
    for word in ("everything was published before", "nothing was published"):
        assert start(("rollback", out, 1), stopping).communicate(timeout=HANG)[1] == f"packer: terminated; {word}\n"
    assert Manifest.load(out).generation == 1


@pytest.mark.parametrize("number", ENDING)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_signal_before_and_after_the_command_makes_no_traceback(number: signal.Signals, when: str) -> None:
    code = f"""
import os, sys, types
from packer import __main__ as packer
def stopped():
    if {when == "before"}:
        os.kill(os.getpid(), {int(number)})
packer._command = stopped
packer.main()
os.kill(os.getpid(), {int(number)})
print("here")
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=default_signals,
    )
    ended = (128 + number, "", "") if when == "before" else (0, "here\n", "")
    assert (done.returncode, done.stdout, done.stderr) == ended


def test_what_is_ignored_stays_ignored() -> None:
    code = "from packer import __main__ as packer\npacker._command = lambda: __import__('os').kill(0, 1)\npacker.main()"
    command = [sys.executable, "-c", code]
    nohup = subprocess.run(
        command, check=False, start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
    )
    assert nohup.returncode == 0


def test_the_server_that_workers_are_forked_from_hears_no_signal() -> None:
    code = """
from multiprocessing import forkserver
from pathlib import Path
from packer.workers.fork_server import start_fork_server
start_fork_server()
status = Path(f"/proc/{forkserver._forkserver._forkserver_pid}/status").read_text()
print(next(line for line in status.splitlines() if line.startswith("SigBlk:")).split()[1])
"""
    done = python("-c", code)
    blocked = int(done.stdout, 16)
    assert all(blocked >> (number - 1) & 1 for number in ENDING)
