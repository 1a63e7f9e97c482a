"""Find the file of annotations that lists a picture: files by a template, pictures by the end of their path."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile

from packer.errors import Problem
from packer.pairs.pair import Pair
from packer.pairs.template import composed
from packer.sources.annotated.indexed_files import NAMED, IndexedFiles


def files_of_many(template: str, paths: Iterable[str]) -> dict[str, str]:
    """Return the files that a template without a key fits, and the split of each; empty if it has none."""
    text = re.escape(template.removeprefix("./")).replace(r"\*", "[^/]*?").replace(r"\{split\}", "(?P<split>[^/]+?)")
    pattern = re.compile(text)
    matches = {path: pattern.fullmatch(path) for path in paths}
    return {path: match.groupdict().get("split", "") for path, match in matches.items() if match}


def parts_of(
    pairs: Iterable[Pair], files: IndexedFiles, splits: Mapping[str, str]
) -> Iterator[tuple[Pair, tuple[str, ...]]]:
    """Yield each picture with the part that has its annotations. Several: equally near files list it. None: no file.

    A file names a picture by its path below RAW, or by the end of that path. If several do, the nearest counts.
    """
    for pair in pairs:
        image = composed(pair.image)
        chosen = [path for path, split in splits.items() if not split or split == pair.split]
        names = [image]
        while (rest := names[-1].partition("/")[2]) and "/" in names[-1]:
            names.append(rest)
        listed = [(path, name) for name in names for path in chosen if files.index(path).digest(name) is not None]
        if len(listed) > 1:
            nearest = max((_shared_folders(path, image), len(name)) for path, name in listed)
            listed = [entry for entry in listed if (_shared_folders(entry[0], image), len(entry[1])) == nearest]
        yield pair, tuple(map(NAMED.join, listed))


def _shared_folders(path: str, other: str) -> int:
    """Return how many folders two paths have in common."""
    folders = zip(path.split("/")[:-1], other.split("/")[:-1], strict=False)
    return len(list(takewhile(lambda pair: pair[0] == pair[1], folders)))


def without_picture(files: IndexedFiles, parts: Iterable[str]) -> Iterator[Problem]:
    """Yield a problem for each picture that a file lists and that is not there."""
    listed: dict[str, list[str]] = {path: [] for path in files.states}
    for part in parts:
        path, name = files.split(part)
        listed[path].append(name)
    for path, names in listed.items():
        for name in files.others(path, names):
            yield Problem("has no image", "", (f"{path}{NAMED}{name}",), "picture")
