"""`packer help`, `packer -V`, and completion in real shells."""

from __future__ import annotations

import os
import pty
import select
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import HANG, errors_of, run

from packer.cli import main
from packer.cli.completion import SHELLS
from readers.contract import VERSION

INSTALLED = [
    pytest.param(shell, marks=pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not installed"))
    for shell in SHELLS
]
COMPLETE = {
    "bash": 'COMP_WORDS=({words}); COMP_CWORD={last}; _packer_completion packer; printf "%s\n" "${{COMPREPLY[@]}}"',
    "zsh": "words=({words}); CURRENT={number}; _packer_completion",
    "fish": 'complete --do-complete "{words}"',
}
"""The command that completes the last of some words in a shell without a terminal."""
BEFORE = {
    "zsh": """compdef() { :; }
compadd() { local array=${@[-1]}; print -l -- ${(P)array}; }
_describe() { local array=$3; print -l -- ${(P)array}; }
"""
}
"""Functions of zsh that work in a terminal only: these print the names that they are given."""


PACKER = 'import sys; from packer.__main__ import main; sys.argv[0] = "packer"; main()'


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The environment of a shell that finds a command `packer` in its PATH."""
    command = tmp_path / "bin" / "packer"
    command.parent.mkdir()
    python = shlex.quote(sys.executable)  # a line with #! allows no space in it
    command.write_text(f"#!/bin/sh\nexec {python} -c '{PACKER}' \"$@\"\n")
    command.chmod(0o755)
    return {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}", "TERM": "dumb"}


@pytest.mark.parametrize("shell", INSTALLED)
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("packer veri", {"verify"}),
        ("packer build --form", {"--format"}),
        ("packer build --format l", {"lmdb"}),
        ("packer build --preset camvid-", {"camvid-11"}),
        ("packer presets show voc", {"voc"}),
        ("packer help roll", {"rollback"}),
        ("packer help presets s", {"show"}),
    ],
)
def test_a_shell_completes(shell: str, words: str, found: set[str], environment: dict[str, str]) -> None:
    count = len(words.split())
    script = subprocess.check_output(["packer", "completion", shell], env=environment, text=True)
    script = f"{BEFORE.get(shell, '')}{script}\n{COMPLETE[shell].format(words=words, last=count - 1, number=count)}"
    done = subprocess.run([shell, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert found <= {line.split("\t")[0].split(":")[0] for line in done.stdout.splitlines()}, done


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_the_tab_key_completes_in_bash(environment: dict[str, str], tmp_path: Path) -> None:
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], environment)
    written = b""
    try:
        os.write(terminal, b"source <(packer completion bash); echo re''ady\n")
        for answer in (b"\nready", b"rollback"):
            while answer not in written.replace(b"\r", b""):
                assert select.select([terminal], [], [], HANG)[0], written
                written += os.read(terminal, 4096)
            os.write(terminal, b"packer roll\t" if answer == b"\nready" else b"\x03exit\n")
    finally:
        os.close(terminal)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_help_is_that_of_the_option() -> None:
    assert run("help").stdout == run("--help").stdout
    for name in main.list_commands(main.make_context("packer", [], resilient_parsing=True)):
        assert run("help", name).stdout == run(name, "--help").stdout, name
    assert run("help", "presets", "show").stdout == run("presets", "show", "--help").stdout


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["biuld"], "Did you mean 'build'?"),
        (["presets", "shw"], "Did you mean 'show'?"),
        (["build", "x"], "no command"),
    ],
)
def test_help_of_an_unknown_command_names_the_nearest(words: list[str], answer: str) -> None:
    assert answer in errors_of(2, "help", *words)


def test_the_version_has_a_short_option() -> None:
    assert run("-V").stdout == run("--version").stdout
    assert VERSION in run("-V").stdout
