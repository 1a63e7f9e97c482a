"""The configuration of the last build, kept in OUT: what `packer diff` and `packer repair` plan with."""

from __future__ import annotations

from pathlib import Path

from packer.errors import InputError
from packer.publish.atomic import put_text

NAME = "packer.toml"
HEAD = "# The configuration of the last build, as `packer build --print-config` tells it. It is no part of the pack.\n"


def keep_config(out: Path, text: str) -> None:
    """Replace the file, if it says something else."""
    path = out / NAME
    if not path.is_file() or path.read_text(encoding="utf-8", errors="replace") != HEAD + text:
        put_text(HEAD + text, path)


def kept_config(out: Path) -> Path:
    """Where it lies; InputError where there is none."""
    path = out / NAME
    if not path.is_file():
        raise InputError(f"{path}: is not there, so it is not known how {out} was built; say it with --config FILE")
    return path
