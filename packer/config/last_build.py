"""The settings of the last build, kept in OUT for `packer diff` and `packer repair`."""

from __future__ import annotations

from pathlib import Path

from packer.config.config import Setting, Settings, read_config, to_toml
from packer.config.effective import effective, portable
from packer.config.options import CONFIGURATION
from packer.errors import InputError, SettingsError, UsageError
from packer.publish.atomic import write_atomic
from packer.publish.target import holds_pack
from readers.contract.manifest import Manifest, is_pack
from readers.stores.open_store import url_of

NAME = "packer.toml"
HEAD = "# The settings of the last build, for packer diff and packer repair. They are not part of the pack.\n"


def keep_settings(out: Path, settings: Settings) -> None:
    """Write the settings of a build into its pack, unless they are there already."""
    path, text = out / NAME, HEAD + to_toml(portable(settings))
    if not path.is_file() or path.read_text(encoding="utf-8", errors="replace") != text:
        write_atomic(path, text)


def last_settings(out: Path, raw: Path | None = None, config: Path | None = None, with_raw: bool = True) -> Settings:
    """The settings for a build of RAW into OUT: the settings in `config`, or else of the last build, which name RAW.

    A build from a source that is no folder needs no RAW.
    """
    kept = out / NAME
    if config is None and not kept.is_file():
        if not is_pack(out):
            Manifest.load(out)  # its error says what the folder is
        raise SettingsError(f"{kept}: is missing, so the options of {out} are unknown; name them with --config FILE")
    named = _named(out, kept, raw) if with_raw else {}
    settings = effective({"config": str(config or kept), **named, "out": str(out)})
    return settings if with_raw else {name: value for name, value in settings.items() if name != "raw"}


def _named(out: Path, kept: Path, source: Path | None) -> Settings:
    """The setting that names a folder of files, a pack or a container: `source`, or the source of the last build."""
    last = read_config(kept, more=CONFIGURATION) if kept.is_file() else {}
    path = source or _last_path(out, last.get("from", last.get("raw")))
    return {"from" if holds_pack(path) or "from" in last else "raw": str(path)}


def _last_path(out: Path, raw: Setting | None) -> Path:
    """The path that the last build named, if something is still there."""
    if raw is None:
        raise UsageError(
            f"{out}: does not say what it was built from; name the folder: packer repair {out} RAW; "
            "or give repair_pack the source in Python"
        )
    if url_of(raw) is None and not Path(str(raw)).exists() and not set("*?[{").intersection(str(raw)):
        raise InputError(
            f"{raw}: does not exist, and {out} was built from it; if it was moved, name it where it is now: "
            f"packer repair {out} RAW"
        )
    return Path(str(raw))
