"""`Container`: what each source that `--from` finds by its content has in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, Protocol

from packer.pairs.template import PICTURES
from packer.recipe.source import Source


class Names(NamedTuple):
    """The names in a container of what --image, --label and --key ask for: arrays, columns, suffixes."""

    image: str | None = None
    label: str | None = None
    key: str | None = None


class Container(Protocol):
    """A class of sources that opens one kind of container. It imports its library when it opens one."""

    @property
    def kind(self) -> str: ...

    def fits(self, path: Path, head: bytes) -> bool:
        """Return whether this is such a container: a file that begins with `head`, or a folder, whose head is empty."""

    def at(self, path: Path, names: Names) -> Source:
        """Open a container. Raise one error with all that is wrong with its names, lengths and types."""

    def from_json(self, facts: dict[str, Any]) -> Source:
        """Open it in a worker, from what `to_text` wrote."""


def is_folder_of(path: Path, suffixes: tuple[str, ...]) -> bool:
    """Return whether a path is a folder of files with these suffixes, perhaps with notes, without pictures and folders.

    A folder of pictures may have an array of its own, such as their mean.
    """
    has_files = False
    for file in path.iterdir() if path.is_dir() else ():
        if not file.name.startswith("."):
            if file.suffix in suffixes:
                has_files = True
            elif file.suffix.lower() in PICTURES or file.is_dir():
                return False
    return has_files
