"""Split lists: text files that name what belongs to a split, one a line, as most public data sets ship them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from packer.errors import InputError, UsageError
from packer.pairs.layouts import SPLIT_FOLDERS
from packer.pairs.paths import is_picture, read_names
from packer.pairs.template import OTHER_PICTURES, PICTURES

VOC_LISTS = "ImageSets/Segmentation"
USUAL_FOLDERS = (VOC_LISTS, "splits", "lists", "")
USUAL_NAMES = (*SPLIT_FOLDERS, "trainval")
HELD_OUT = ("val", "valid", "validation", "test", "testing")
_SPLIT = re.compile(r"\{split(?::(?P<choices>[^{}]+))?\}")
_FLAGS = re.compile(r"(?:\s+-?\d+)+$")
_BETWEEN = re.compile(
    "(?i:(?<=" + ")|(?<=".join(re.escape(suffix) for suffix in (*PICTURES, *OTHER_PICTURES)) + r"))\s*[,;\s]\s*"
)


@dataclass(frozen=True)
class ListedLine:
    """A line of a list: its split, where it is, and what it says."""

    split: str
    place: str
    text: str

    @property
    def names(self) -> tuple[str, ...]:
        """What a line that names one thing may mean: a name may have spaces, or flags behind it."""
        return tuple(dict.fromkeys((self.text, _FLAGS.sub("", self.text))))

    @property
    def two_paths(self) -> tuple[str, str] | None:
        """The image's path and the label's, where the line has both."""
        for between in _BETWEEN.finditer(self.text):
            image, label = self.text[: between.start()], self.text[between.end() :]
            if is_picture(label):
                return image, label
        return None


@dataclass(frozen=True)
class Lists:
    """Where the lists are: a path with `{split}`, below the raw folder or else below the current one."""

    text: str

    def __post_init__(self) -> None:
        if len(_SPLIT.findall(self.text)) != 1 or set("{}*?[") & set(_SPLIT.sub("", self.text)):
            raise UsageError(f"--lists {self.text!r}: expected a folder, or a path with {{split}} once and no * or ?")

    def read(self, raw: Path, problems: list[str]) -> list[ListedLine]:
        """Every line of every list, by split."""
        found = _matching(raw, self.text) or _matching(Path(), self.text)
        choices = [split for split in _parts(self.text)[1].split("|") if split]
        lost = [split for split in choices if split not in found]
        if lost or not found:
            none = f"no list {', '.join(lost)}" if lost else "no such list"
            raise InputError(f"--lists {self.text}: there is {none}, neither below {raw} nor here")
        return [line for split in choices or sorted(found) for line in _read_list(split, *found[split], problems)]


def given_lists(raw: Path, text: str) -> Lists:
    """What the user named: a folder of `<split>.txt`, or a path with `{split}`."""
    if _SPLIT.search(text):
        return Lists(text)
    if not (raw / text).is_dir() and not Path(text).is_dir():
        raise InputError(f"--lists {text}: there is no such folder, neither below {raw} nor here")
    return Lists(f"{text.rstrip('/')}/{{split}}.txt")


def usual_lists(files: Iterable[str]) -> list[Lists]:
    """The lists that lie where people put them, such as `splits/train.txt`."""
    found: dict[str, set[str]] = {}
    for path in files:
        folder, _, name = path.rpartition("/")
        split = name.removesuffix(".txt")
        if folder in USUAL_FOLDERS and split != name and (folder == VOC_LISTS or split.casefold() in USUAL_NAMES):
            found.setdefault(folder, set()).add(split)
    return [
        Lists(f"{folder}/{{split:{'|'.join(sorted(found[folder]))}}}.txt".lstrip("/"))
        for folder in USUAL_FOLDERS
        if folder in found
    ]


def without_unions(lines: list[ListedLine]) -> list[ListedLine]:
    """The lines without those lists that say nothing new, as `trainval` beside train and val; a test list that names
    what is trained on stays, as the leak it is."""
    names: dict[str, set[tuple[str, ...]]] = {}
    for line in lines:
        names.setdefault(line.split, set()).add(line.names)
    unions = set()
    for split, listed in names.items():
        parts = [others for other, others in names.items() if other not in unions and others < listed]
        if split not in HELD_OUT and len(parts) > 1 and set().union(*parts) == listed:
            unions.add(split)
    if names.get("trainval", set()) <= names.get("train", set()) | names.get("val", set()):
        unions.add("trainval")
    return [line for line in lines if line.split not in unions]


def _parts(text: str) -> tuple[str, str, str]:
    """What is before `{split}`, its choices, and what is behind it."""
    found = _SPLIT.search(text)
    assert found
    return text[: found.start()], found["choices"] or "", text[found.end() :]


def _matching(base: Path, text: str) -> dict[str, tuple[Path, str]]:
    """The lists below a folder, each by its split, with its path as people would write it."""
    before, _, after = _parts(text)
    folder = before[: before.rfind("/") + 1]
    start = before[len(folder) :]
    found = {}
    for path in (base / folder).glob(f"{start}*{after}"):
        name = path.relative_to(base / folder).as_posix()
        if path.is_file() and not name.startswith("."):
            found[name[len(start) : len(name) - len(after)]] = (path, folder + name)
    return found


def _read_list(split: str, path: Path, shown: str, problems: list[str]) -> Iterator[ListedLine]:
    try:
        text = read_names(path)
    except (OSError, ValueError) as error:
        problems.append(f"{shown}: the list cannot be read ({error})")
        return
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield ListedLine(split, f"{shown}:{number}", line.strip())
