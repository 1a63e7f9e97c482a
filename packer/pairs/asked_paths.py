"""`AskedPaths`: the paths that a list or a table names, found among very many files without an object for each.

The list is read twice. First its paths are noted and sorted, like the paths of all files. Both in step give the file of
each path. Then the list is read again, and its paths are answered in its order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

from packer.pairs.files import RawFiles
from packer.pairs.template import composed
from packer.spill.sorted_lines import SortedLines


class NotPlainError(Exception):
    """Something that a message must name. It is never shown."""


class AskedPaths:
    """Notes what is asked for. Until all is, each path seems to be a file."""

    def __init__(self) -> None:
        self._lines = SortedLines()
        self._count = 0

    def exact(self, path: str) -> str:
        """Ask for the file of exactly this path, or else the only one that differs in the form of its accents."""
        self._lines.add([_line(composed(path), f"{self._count:012}\0{path}")])
        self._count += 1
        return path

    def among(self, files: RawFiles) -> AnsweredPaths:
        """Find all paths among these files."""
        listed, answers = SortedLines(), SortedLines()
        for folders in files.parts():
            for folder, names in folders.items():
                listed.add([_line(composed(folder + name), folder + name) for name in names])
        names_in_use = _by_name(listed)
        name, paths = next(names_in_use, ("", []))
        for asked, number_and_path in map(_halves, self._lines):
            while name < asked:
                name, paths = next(names_in_use, (asked, []))
            number, path = _halves(number_and_path)
            if name == asked and (path in paths or len(paths) == 1):
                answers.add([f"{number}\0{path if path in paths else paths[0]}"])
        return AnsweredPaths(answers, self._count)


class AnsweredPaths:
    """Gives the files, in the order in which they were asked for."""

    def __init__(self, answers: Iterable[str], count: int) -> None:
        self._answers = map(_halves, answers)
        self._next = next(self._answers, None)
        self._asked, self._count = 0, count

    def exact(self, path: str) -> str | None:
        """Return the file of a path, None if there is none."""
        number, self._asked = self._asked, self._asked + 1
        if number == self._count:
            raise NotPlainError("a list that changed while it was read")
        if self._next is None or int(self._next[0]) != number:
            return None
        _, file = self._next
        if composed(file) != composed(path):
            raise NotPlainError("a list that changed while it was read")
        self._next = next(self._answers, None)
        return file


def _line(name: str, rest: str) -> str:
    if "\n" in rest or "\0" in name:
        raise NotPlainError("a name that cannot be packed")
    return f"{name}\0{rest}"


def _halves(line: str) -> tuple[str, str]:
    before, _, after = line.partition("\0")
    return before, after


def _by_name(lines: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each name with the paths that are it, but for the form of accents."""
    for name, same in groupby(map(_halves, lines), itemgetter(0)):
        yield name, [path for _, path in same]


def check_once(lines: Iterable[str]) -> None:
    """Raise NotPlainError if a line occurs twice in sorted lines."""
    before = None
    for line in lines:
        if line == before:
            raise NotPlainError("twice")
        before = line
