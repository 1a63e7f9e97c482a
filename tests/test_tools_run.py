"""`tools/run` starts every program of tools/ from any folder, and passes options, exit codes and Ctrl-C through."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPO
from program import TOOLS, command

LISTED = ("bench.reading", "checks.house", "checks.language", "demo", "drills.kills", "golden", "samples", "train_demo")


def run(*arguments: str, folder: Path = REPO) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, str(TOOLS / "run"), *arguments]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)


def listing() -> dict[str, str]:
    lines = run().stdout.partition("a function `main`.\n\n")[2].splitlines()
    return {line.split()[0]: line.partition(" ")[2].strip() for line in lines}


def test_the_list_has_a_line_for_each_program() -> None:
    found = listing()
    assert set(LISTED) <= set(found)
    assert all(len(line) > 20 for line in found.values()), found
    assert not {"program", "tables", "scenes.tiny", "drills.tally"} & set(found)


def test_every_program_shows_how_to_start_it() -> None:
    """Read the docstrings, because some programs need packages that are not installed here."""
    for name in listing():
        path = TOOLS.joinpath(*name.split("."))
        file = path / "__main__.py" if path.is_dir() else path.with_suffix(".py")
        assert f"tools/run {name}" in (ast.get_docstring(ast.parse(file.read_text())) or ""), name


def test_a_program_runs_from_any_folder_with_its_options(tmp_path: Path) -> None:
    done = run("drills.damaged_pictures", "--count", "1", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("file type")
    shown = run("bench.reading", "--help", folder=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("usage: tools/run bench.reading")


def test_modules_of_the_folder_are_not_taken_from_the_working_folder(tmp_path: Path) -> None:
    (tmp_path / "drills").mkdir()
    (tmp_path / "drills" / "__init__.py").write_text("raise SystemExit(9)\n")
    assert run("drills.damaged_pictures", "--count", "1", folder=tmp_path).returncode == 0


def test_the_code_of_the_checkout_is_taken(tmp_path: Path) -> None:
    """Another version of the packages comes first on the path, as if it were installed."""
    for package in ("packer", "readers"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("raise SystemExit(9)\n")
    argv = command("drills.soak", "--nights", 1)  # it builds in a process and reads in another
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(argv, cwd=REPO, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["nothing", "bench.nothing", "tables", "bench", "../demo", "bench/reading"])
def test_an_unknown_program_is_an_error(name: str) -> None:
    done = run(name)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"there is no program {name!r}" in done.stderr


def test_exit_codes_pass_through() -> None:
    assert run("drills.damaged_pictures", "--count", "many").returncode == 2
    assert run("bench.reading_peers", "--only", "tape").returncode == 1


def test_ctrl_c_ends_a_program() -> None:
    with subprocess.Popen(
        command("drills.damaged_pictures", "--count", "10000000"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()  # the head of its table: it runs
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT
    assert b"KeyboardInterrupt" in errors


def test_a_python_without_segpack_is_an_error(tmp_path: Path) -> None:
    """Run a copy of the launcher, with neither segpack nor a `.venv` next to it."""
    copied = tmp_path / "tools" / "run"
    copied.parent.mkdir()
    copied.write_text((TOOLS / "run").read_text())
    (copied.parent / "demo.py").write_text("def main(): ...\n")
    argv = [sys.executable, "-I", "-S", str(copied), "demo"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "segpack is not installed" in done.stderr


def test_a_python_that_has_the_packages_on_its_path_is_taken(tmp_path: Path) -> None:
    copied = tmp_path / "tools" / "run"
    copied.parent.mkdir()
    copied.write_text((TOOLS / "run").read_text())
    (copied.parent / "demo.py").write_text("def main():\n    print('taken')\n")
    argv = [sys.executable, "-S", str(copied), "demo"]
    environment = {**os.environ, "PYTHONPATH": str(REPO)}
    done = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "taken\n"), done.stderr
