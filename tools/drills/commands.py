"""Commands of the packer, run in this process: an interpreter that starts takes longer than a tiny build."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from types import ModuleType

from packer.cli import main


@dataclass(frozen=True)
class Done:
    """What a command said and exited with."""

    code: int
    words: str
    errors: str


def packer(*arguments: object) -> Done:
    """Run a command."""
    words, errors = io.StringIO(), io.StringIO()
    with _light_workers(), redirect_stdout(words), redirect_stderr(errors):
        code = main([str(argument) for argument in arguments], prog_name="packer", standalone_mode=False)
    return Done(code or 0, words.getvalue(), errors.getvalue())


def must(*arguments: object) -> Done:
    """Run a command that has no reason to fail."""
    done = packer(*arguments)
    if done.code != 0:
        raise RuntimeError(f"packer {' '.join(map(str, arguments))}: exit code {done.code}\n{done.errors}")
    return done


@contextmanager
def _light_workers() -> Iterator[None]:
    """Workers import their parent's main module, and a drill with all that it needs takes longer than a build."""
    drill = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = drill
