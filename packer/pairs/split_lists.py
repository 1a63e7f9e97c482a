"""Read split lists: text files that name the members of a split, one per line, as in most public data sets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packer.errors import Problem, SettingsError, UsageError
from packer.pairs.folder_names import Folders
from packer.pairs.layouts import SPLIT_FOLDERS
from packer.pairs.paths import is_picture, read_list_text
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
class ListLine:
    """A line of a list: its split, its position as `path:number`, and what is written there."""

    split: str
    where: str
    written: str
    """The line with the spaces at its ends: a name may begin with one."""

    @property
    def text(self) -> str:
        """The line without the spaces at its ends."""
        return self.written.strip()

    @property
    def names(self) -> tuple[str, ...]:
        """The names that a line may mean: all of it, its text, or the text without the flags at its end."""
        return tuple(dict.fromkeys((self.written, self.text, self.name)))

    @property
    def name(self) -> str:
        """The text without the flags at its end. It may have spaces."""
        return _FLAGS.sub("", self.text)

    @property
    def two_paths(self) -> tuple[str, str] | None:
        """The paths of the image and the label, if the line has both."""
        for between in _BETWEEN.finditer(self.text):
            image, label = self.text[: between.start()], self.text[between.end() :]
            if is_picture(label):
                return image, label
        return None


@dataclass(frozen=True)
class SplitLists:
    """The path of the lists with `{split}`, below the raw folder or else below the current folder."""

    text: str

    def __post_init__(self) -> None:
        if len(_SPLIT.findall(self.text)) != 1 or set("{}*?[") & set(_SPLIT.sub("", self.text)):
            raise UsageError(f"--lists {self.text!r}: expected a folder, or a path with {{split}} once and no * or ?")

    def read(self, raw: Path, problems: list[Problem]) -> list[ListLine]:
        """Read every line of every list, sorted by split."""
        lists = _matching(raw, self.text) or _matching(Path(), self.text)
        choices = [split for split in _parts(self.text)[1].split("|") if split]
        absent = [split for split in choices if split not in lists]
        if absent or not lists:
            which = f"no list {', '.join(absent)}" if absent else "no such list"
            raise SettingsError(f"--lists {self.text}: there is {which} below {raw} or the current folder")
        return [line for split in choices or sorted(lists) for line in _read_list(split, *lists[split], problems)]


def given_lists(raw: Path, text: str) -> SplitLists:
    """Parse --lists: a folder with `<split>.txt`, or a path with `{split}`."""
    if _SPLIT.search(text):
        return SplitLists(text)
    if not (raw / text).is_dir() and not Path(text).is_dir():
        raise SettingsError(f"--lists {text}: there is no such folder below {raw} or the current folder")
    return SplitLists(f"{text.rstrip('/')}/{{split}}.txt")


def usual_lists(files: Folders) -> list[SplitLists]:
    """Return the lists in the usual folders, such as `splits/train.txt`."""
    splits: dict[str, set[str]] = {}
    for folder in USUAL_FOLDERS:
        for name in files.get(f"{folder}/".lstrip("/"), ()):
            split = name.removesuffix(".txt")
            if split != name and (folder == VOC_LISTS or split.casefold() in USUAL_NAMES):
                splits.setdefault(folder, set()).add(split)
    return [
        SplitLists(f"{folder}/{{split:{'|'.join(sorted(splits[folder]))}}}.txt".lstrip("/"))
        for folder in USUAL_FOLDERS
        if folder in splits
    ]


def without_unions(lines: list[ListLine]) -> list[ListLine]:
    """Drop lists that only repeat others, such as `trainval` next to train and val.

    A test list that repeats the training lists stays, because it is a leak.
    """
    names: dict[str, set[str]] = {}
    for line in lines:
        names.setdefault(line.split, set()).add(line.text)
    unions = set()
    for split, listed in names.items():
        parts = [others for other, others in names.items() if other not in unions and others < listed]
        if split not in HELD_OUT and len(parts) > 1 and set().union(*parts) == listed:
            unions.add(split)
    if names.get("trainval", set()) <= names.get("train", set()) | names.get("val", set()):
        unions.add("trainval")
    return [line for line in lines if line.split not in unions]


def _parts(text: str) -> tuple[str, str, str]:
    """Return the text before `{split}`, its choices, and the text after it."""
    match = _SPLIT.search(text)
    assert match
    return text[: match.start()], match["choices"] or "", text[match.end() :]


def _matching(base: Path, text: str) -> dict[str, tuple[Path, str]]:
    """Return the path of each split's list below a folder, and its name for messages."""
    before, _, after = _parts(text)
    folder = before[: before.rfind("/") + 1]
    start = before[len(folder) :]
    lists = {}
    for path in (base / folder).glob(f"{start}*{after}"):
        name = path.relative_to(base / folder).as_posix()
        if path.is_file() and not name.startswith("."):
            lists[name[len(start) : len(name) - len(after)]] = (path, folder + name)
    return lists


def _read_list(split: str, path: Path, shown: str, problems: list[Problem]) -> Iterator[ListLine]:
    try:
        text = read_list_text(path)
    except (OSError, ValueError) as error:
        problems.append(Problem(f"{shown}: the list cannot be read ({error})"))
        return
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield ListLine(split, f"{shown}:{number}", line)
