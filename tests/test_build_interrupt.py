"""A build that is interrupted or killed: it ends soon, its workers end with it, and the old generation stays."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import HANG, RawFolder, make_raw, run
from drills.processes import default_signals, orphans
from store_servers import credentials

from readers import open_dataset


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> RawFolder:
    """Takes some seconds to pack."""
    raw = make_raw(tmp_path_factory.mktemp("large") / "raw", {"train": 1}, height=512, width=512)
    for kind in ("images", "masks"):
        first = raw.path / "train" / kind / "street_000.png"
        for number in range(1, 600):
            (first.parent / f"street_{number:03d}.png").hardlink_to(first)
    return raw


def start(raw: RawFolder, out: Path, workers: int) -> subprocess.Popen[str]:
    """A build in a group of processes of its own, as a shell starts it, well under way."""
    command = ["build", "--quiet", "--workers", str(workers), "--shard-size", "8MiB", str(raw.path), str(out)]
    process = subprocess.Popen(
        [sys.executable, "-m", "packer", *command],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=default_signals,
    )
    deadline = time.monotonic() + HANG
    while process.poll() is None and not list(out.glob("shards/*.receipt.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert process.poll() is None, "it ended before it could be interrupted"
    return process


@pytest.mark.long(short=lambda case: (case["workers"] == 2) == (case["gaps"] != (0.05,)))
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("gaps", [(), (0.05,), (0.3,)])
def test_ctrl_c_once_or_twice_ends_soon_without_a_traceback(
    large: RawFolder, tmp_path: Path, workers: int, gaps: tuple[float, ...]
) -> None:
    process = start(large, tmp_path / "out", workers)
    os.killpg(process.pid, signal.SIGINT)
    for gap in gaps:
        time.sleep(gap)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
    _, words = process.communicate(timeout=HANG)
    assert process.returncode == 130, words
    assert not orphans(process.pid, HANG)
    assert not (tmp_path / "out" / "manifest.json").exists()
    if not gaps:
        assert words == "packer: interrupted; nothing was published\n"
        assert not list((tmp_path / "out" / "shards").glob(".partial-*"))


@pytest.mark.long(every=3)
@pytest.mark.parametrize(
    ("kind", "code", "word"), [(signal.SIGTERM, 143, "terminated"), (signal.SIGHUP, 129, "hung up")]
)
@pytest.mark.parametrize("to_all", [True, False])
def test_what_ends_a_command_ends_it_in_order(
    large: RawFolder, tmp_path: Path, kind: signal.Signals, code: int, word: str, to_all: bool
) -> None:
    process = start(large, tmp_path / "out", 2)
    if to_all:
        os.killpg(process.pid, kind)
    else:
        process.send_signal(kind)
    _, words = process.communicate(timeout=HANG)
    assert (process.returncode, words) == (code, f"packer: {word}; nothing was published\n")
    assert not orphans(process.pid, HANG)
    assert not list((tmp_path / "out").rglob(".partial-*"))
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_who_publishes_nothing_does_not_speak_of_it(large: RawFolder, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("build", "--quiet", "--labels", "index", large.path, out).exit_code == 0
    process = subprocess.Popen([sys.executable, "-m", "packer", "verify", "--quiet", str(out)], stderr=subprocess.PIPE)
    time.sleep(0.6)
    process.send_signal(signal.SIGTERM)
    words = process.communicate(timeout=HANG)[1].decode()
    assert (process.returncode, words) in [(143, "packer: terminated\n"), (0, ""), (143, "")]


def test_workers_end_with_a_parent_that_is_killed(large: RawFolder, tmp_path: Path) -> None:
    process = start(large, tmp_path / "out", 2)
    process.kill()
    process.communicate(timeout=HANG)  # a worker that lived on would hold the pipe open
    assert process.returncode == -signal.SIGKILL
    assert not orphans(process.pid, HANG)
    assert run("info", tmp_path / "out").exit_code == 1


def test_a_killed_build_is_gone_on_with(large: RawFolder, tmp_path: Path) -> None:
    process = start(large, tmp_path / "out", 2)
    process.kill()
    process.communicate(timeout=HANG)
    small = make_raw(tmp_path / "raw", {"train": 3})
    assert run("build", small.path, tmp_path / "out").exit_code == 0
    assert len(open_dataset(tmp_path / "out")) == 3
    assert run("verify", tmp_path / "out").exit_code == 0


def test_ctrl_c_ends_a_command_that_waits_for_a_store() -> None:
    """The client of the store lets no signal through while it waits, and it waits for minutes."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        process = subprocess.Popen(
            [sys.executable, "-m", "packer", "info", "s3://bucket/pack"],
            env={**os.environ, **credentials(url)},
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=default_signals,
        )
        silent.settimeout(HANG)
        connection, _ = silent.accept()
        with connection:
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=HANG)[1] == "packer: interrupted\n"
    assert process.returncode == 130


WAITING = """
import signal, threading, time
from readers.stores.waiting import interruptible

def call():
    time.sleep(0.3)  # the main thread waits by now
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)
    time.sleep(60)

try:
    interruptible(call)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_a_signal_that_reaches_another_thread_ends_the_waiting() -> None:
    """Only the main thread runs handlers, and a lock that it waits for does not wake it then."""
    command = [sys.executable, "-c", WAITING]
    # a batch job starts with SIGINT ignored, and Python then has no handler for it
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, preexec_fn=default_signals)
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr
