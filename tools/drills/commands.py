"""Commands of the packer, run in this process: to start an interpreter takes longer than a tiny build."""

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
    """The exit code, stdout and stderr of a command."""

    code: int
    output: str
    errors: str


def packer(*arguments: object) -> Done:
    """Run a command."""
    output, errors = io.StringIO(), io.StringIO()
    with light_workers(), redirect_stdout(output), redirect_stderr(errors):
        code = main([str(argument) for argument in arguments], prog_name="packer", standalone_mode=False)
    return Done(code or 0, output.getvalue(), errors.getvalue())


def must(*arguments: object) -> Done:
    """Run a command, and raise RuntimeError if it fails."""
    done = packer(*arguments)
    if done.code != 0:
        raise RuntimeError(f"packer {' '.join(map(str, arguments))}: exit code {done.code}\n{done.errors}")
    return done


@contextmanager
def light_workers() -> Iterator[None]:
    """Hide the main module, which workers import: that of a test run takes longer to import than a tiny build."""
    main_module = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main_module
