"""The settings of the last build, kept in OUT for `packer diff` and `packer repair`."""

from __future__ import annotations

from pathlib import Path

from packer.config.config import Settings, to_toml
from packer.config.effective import effective, portable
from packer.errors import InputError
from packer.publish.atomic import write_atomic

NAME = "packer.toml"
HEAD = "# The settings of the last build, for packer diff and packer repair. They are not part of the pack.\n"


def keep_settings(out: Path, settings: Settings) -> None:
    """Write the settings of a build into its pack, unless they are there already."""
    path, text = out / NAME, HEAD + to_toml(portable(settings))
    if not path.is_file() or path.read_text(encoding="utf-8", errors="replace") != text:
        write_atomic(path, text)


def last_settings(out: Path, raw: Path, config: Path | None = None) -> Settings:
    """The settings for a build of RAW into OUT: those of `config`, or else those of the last build."""
    path = config or out / NAME
    if config is None and not path.is_file():
        raise InputError(f"{path}: is missing, so the options of {out} are unknown; name them with --config FILE")
    return effective({"config": str(path), "raw": str(raw), "out": str(out)})
