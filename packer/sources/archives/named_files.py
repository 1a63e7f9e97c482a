"""Find the files of an archive on this machine: one file, the files in a folder, or the files of a pattern."""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from contextlib import closing
from glob import glob, has_magic
from pathlib import Path

from packer.errors import InputError, Problem
from packer.pairs.paths import is_picture
from packer.sources.archives.file_patterns import BRACES, expanded


def is_pattern(path: Path) -> bool:
    """Return whether a path stands for others: it does not exist, and has braces, * or ?."""
    return not path.exists() and (BRACES.search(str(path)) is not None or has_magic(str(path)))


def named_files(path: Path) -> list[str]:
    """Return the files that a path or a pattern names, also those that do not exist."""
    if not is_pattern(path):
        return [str(path)]
    named = [_matching(text) if has_magic(text) else [text] for text in expanded(str(path))]
    return list(dict.fromkeys(file for files in named for file in files))


def _matching(pattern: str) -> list[str]:
    return sorted(glob(pattern))  # noqa: PTH207 - glob of a Path needs the folder before the pattern


def files_at(path: Path, suffix: re.Pattern[str]) -> tuple[Path, list[str]]:
    """Return a folder and the files below it that a path stands for. Raise one error that names all missing files."""
    if path.is_dir():
        return path, sorted(os.path.relpath(file, path) for file in _below(path) if suffix.search(file))
    files = named_files(path)
    missing = [Problem("there is no such file", "", (file,)) for file in files if not Path(file).is_file()]
    if missing or not files:
        raise InputError(f"{path}: {len(missing) or 'all'} of its files are missing", missing)
    paths = [Path(file).absolute() for file in files]
    root = Path(os.path.commonpath([file.parent for file in paths]))
    return root, [str(file.relative_to(root)) for file in paths]


def holds_only(folder: Path, suffix: re.Pattern[str]) -> bool:
    """Return whether a folder, or the folders in it, have such files and no pictures, which a raw folder has."""
    has_any = False
    try:
        with closing(_below(folder)) as files:
            for file in files:
                if is_picture(file) or file.endswith("/"):
                    return False
                has_any = has_any or suffix.search(file) is not None
    except OSError:  # the code that reads the folder will name it
        return False
    return has_any


def _below(folder: Path) -> Generator[str, None, None]:
    """Yield the files in a folder and in the folders in it, and the folders below these, which end with a slash."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.name.startswith("."):
                yield from _inside(entry.path) if entry.is_dir() else [entry.path]


def _inside(folder: str) -> Generator[str, None, None]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.name.startswith("."):
                yield f"{entry.path}/" if entry.is_dir() else entry.path
