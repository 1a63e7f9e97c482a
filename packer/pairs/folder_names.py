"""Match all names of a folder with a template at once.

Most templates end in `{key}` between fixed texts, such as `leftImg8bit/{split}/{city}/{key}_leftImg8bit.png`. Whether a
file fits is then decided by its folder and by both ends of its name. That takes a tenth of the time of the template's
regular expression, which decides everything else: other templates, and names with other than ASCII characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

from packer.pairs.template import Template, composed

Folders = Mapping[str, Sequence[str]]
"""The names of the files in each folder. A folder ends with its slash, such as `images/`; the raw folder is empty."""

FIRST_NAMES = 1000
"""The names of a folder that show the kinds of its files."""


@dataclass(frozen=True)
class FolderNames:
    """The names in one folder that fit a template: `before`, a part of the key, `after`, and one of the suffixes."""

    captures: Mapping[str, str]
    """The captures in the folder."""
    begun: str
    """The beginning of each key: the folders that `{key}` takes."""
    before: str
    after: str
    suffixes: tuple[str, ...]

    def of(self, names: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the names that fit, and the key of each. All names must be in ASCII."""
        fits: list[str] = []
        keys: list[str] = []
        for suffix in _suffixes(names):
            if suffix.lower() in self.suffixes:
                same = self._ending(names, self.after + suffix)
                start, end = len(self.before), -len(self.after + suffix)
                fits += same
                keys += [name[start:end] for name in same]
        return fits, [self.begun + key for key in keys] if self.begun else keys

    def _ending(self, names: Sequence[str], end: str) -> list[str]:
        """Return the names with this end and a key."""
        same = [name for name in names if name.endswith(end)]
        if self.before:
            least = len(self.before) + len(end) + 1
            return [name for name in same if name.startswith(self.before) and len(name) >= least]
        if not self.begun and end in same:
            same.remove(end)
        return same


def _suffixes(names: Sequence[str]) -> list[str]:
    """Return all suffixes of names, and the last character of a name without a suffix. Most folders have one suffix."""
    for name in names[:1]:
        suffix = name[name.rfind(".") :]
        if all(map(str.endswith, names, repeat(suffix))):
            return [suffix]
    return sorted({name[name.rfind(".") :] for name in names})


def names_in(folder: str, template: Template) -> FolderNames | None:
    """Return what the names of files in a folder must be to fit a template with fixed ends, None if none can fit."""
    ends = template.fixed_ends
    assert ends, "other templates need the regular expression"
    parts = composed(folder).split("/")
    rest = "/".join(parts[ends.depth :])
    match = ends.folders.fullmatch("".join(f"{part}/" for part in parts[: ends.depth]))
    if match is None or len(parts) <= ends.depth or (rest and not rest.startswith(ends.before)):
        return None
    begun = rest[len(ends.before) :]
    return FolderNames(match.groupdict(), begun, "" if rest else ends.before, ends.after, ends.suffixes)


def first_names(folders: Folders) -> Folders:
    """Return the first names of each folder."""
    return {folder: names[:FIRST_NAMES] for folder, names in folders.items()}


def by_folder(paths: Iterable[str]) -> Folders:
    """Return the names of files in each folder."""
    folders: dict[str, list[str]] = {}
    for path in paths:
        end = path.rfind("/") + 1
        folders.setdefault(path[:end], []).append(path[end:])
    return folders
