"""`packer diagnose` runs training scripts that need no change."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from conftest import HANG, REPO, python
from drills.processes import default_signals

HEAD = """
import sys, time, torch
from torch.utils.data import DataLoader, Dataset
class Slow(Dataset):
    def __len__(self): return 60
    def __getitem__(self, row):
        time.sleep(0.02)
        return torch.zeros(3, 8, 8), torch.tensor(row)
"""


def script(folder: Path, body: str) -> Path:
    path = folder / "train.py"
    path.write_text(HEAD + textwrap.dedent(body))
    return path


def start(*arguments: object, path: Path | None = None) -> subprocess.Popen[str]:
    before = [str(path)] if path else []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*before, str(REPO)])}
    command = [sys.executable, "-m", "packer", "diagnose", *map(str, arguments)]
    return subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=default_signals,
    )


def diagnose(*arguments: object, path: Path | None = None) -> tuple[int, str, str]:
    process = start(*arguments, path=path)
    out, words = process.communicate(timeout=HANG)
    return process.returncode, out, words


def numbers(*arguments: object) -> tuple[list[dict[str, Any]], str]:
    code, out, words = diagnose("--json", *arguments)
    assert code == 0, words
    found: list[dict[str, Any]] = json.loads(out)
    return found, words


@pytest.mark.long(short=lambda case: case["options"] == "")
@pytest.mark.parametrize("options", ["", "num_workers=1", "num_workers=1, multiprocessing_context='spawn'"])
def test_a_slow_data_set_is_found(options: str, tmp_path: Path) -> None:
    train = script(
        tmp_path,
        f"""
        if __name__ == "__main__":
            rows = [row for _, rows in DataLoader(Slow(), batch_size=2, {options}) for row in rows.tolist()]
            print("rows", rows == list(range(60)))
        """,
    )
    code, out, words = diagnose("--report", tmp_path / "waits.html", "--", sys.executable, train)
    assert code == 0, words
    assert out == "rows True\n"
    assert "30 steps" in words
    assert ("Keep the workers" if "spawn" in options else "1. Pack the data") in words
    assert "<svg" in (tmp_path / "waits.html").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.py", "waits.html"]


@pytest.mark.long(short=lambda case: case["storage"] == "npy")
def test_our_loaders_are_recorded_once(packed: Path, tmp_path: Path) -> None:
    train = script(
        tmp_path,
        f"""
        from readers import SlotDataLoader, open_dataset
        train = open_dataset({str(packed)!r}, split="train", label="index")
        for _ in train.loader(2, shuffle=True).to("cpu", dtype=torch.float32):
            time.sleep(0.001)
        for _ in SlotDataLoader(train, batch_size=3): pass
        """,
    )
    found, words = numbers("--", sys.executable, train)
    steps = {entry["record"]["source"]["name"]: entry["record"]["totals"]["steps"] for entry in found}
    assert steps == {"Loader": 12, "SlotDataLoader": 8}, words
    assert all(entry["record"]["source"]["packed"] for entry in found)
    ours = next(entry for entry in found if entry["record"]["source"]["name"] == "Loader")
    assert ours["record"]["source"]["on_device"]
    assert ours["record"]["totals"]["copying"] > 0


def test_the_scripts_exit_code_is_passed_on(tmp_path: Path) -> None:
    assert diagnose("--", sys.executable, "-c", "raise SystemExit(7)")[0] == 7
    code, _, words = diagnose("--", sys.executable, "-c", "import os; os.kill(os.getpid(), 9)")
    assert code == 137
    assert "no training step was recorded" in words
    code, _, words = diagnose("--", tmp_path / "nothing")
    assert code == 2
    assert "nothing: No such file or directory: expected a command" in words
    assert diagnose("--report", tmp_path / "x.pdf", "--", "true")[0] == 2, "wrong usage"


def test_a_script_without_end_has_its_seconds(tmp_path: Path) -> None:
    """The script counts its own steps, because a loaded machine does fewer in the same time."""
    train = script(
        tmp_path,
        """
        with open(sys.argv[1], "w") as counted:
            while True:
                for _ in DataLoader(Slow(), batch_size=2): print("step", file=counted, flush=True)
        """,
    )
    for seconds in (2, 8, 32):  # a loaded machine may need more to import torch
        found, words = numbers("--seconds", seconds, "--", sys.executable, train, tmp_path / "counted")
        if found:
            break
    counted = len((tmp_path / "counted").read_text().splitlines())
    assert abs(found[0]["record"]["totals"]["steps"] - counted) <= 1, words


@pytest.mark.long(short=lambda case: case["number"] == signal.SIGINT)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_script_and_prints_the_verdict(number: int, code: int, tmp_path: Path) -> None:
    train = script(
        tmp_path,
        """
        for epoch in range(1000):
            for _ in DataLoader(Slow(), batch_size=2): pass
            print("epoch", flush=True)
        """,
    )
    process = start("--", sys.executable, train)
    assert process.stdout is not None
    assert process.stdout.readline() == "epoch\n"
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        process.send_signal(number)
    _, words = process.communicate(timeout=HANG)
    assert process.returncode == code, words
    assert "steps, " in words


def test_a_script_that_is_killed_leaves_its_last_record(tmp_path: Path) -> None:
    train = script(
        tmp_path,
        """
        import os
        from pathlib import Path
        from readers.diagnosis import session
        session.WRITTEN_EVERY = 0.1
        while True:
            for _ in DataLoader(Slow(), batch_size=1):
                if list(Path(os.environ[session.FOLDER]).glob("*.json")): os._exit(3)
        """,
    )
    code, _, words = diagnose("--", sys.executable, train)
    assert code == 3
    assert "steps, " in words


def test_what_a_script_had_before_it_has_still(tmp_path: Path) -> None:
    hidden = tmp_path / "site"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text("import builtins; builtins.was_here = __name__\n")
    code, out, words = diagnose(
        "--", sys.executable, "-c", "import sys; print(was_here, 'torch' in sys.modules)", path=hidden
    )
    assert (code, out) == (0, "sitecustomize False\n"), words


def test_a_python_without_readers_is_named(tmp_path: Path) -> None:
    python("-m", "venv", "--without-pip", tmp_path / "venv")
    (tmp_path / "train.py").write_text("print(1)")
    script = [str(tmp_path / "venv/bin/python"), str(tmp_path / "train.py")]
    command = [sys.executable, "-m", "packer", "diagnose", "--", *script]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(command, cwd=REPO, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    assert "No module named 'readers': install segpack in that Python too" in done.stderr
