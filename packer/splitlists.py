"""Split lists: text files that name the keys of a split, one a line, as PASCAL VOC ships them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ListedKey:
    """A line of a list: its split, its place, and the keys it may mean (a key may have spaces, or a flag behind it)."""

    split: str
    place: str
    keys: tuple[str, ...]


def read_lists(raw: Path, folder: str, problems: list[str]) -> Iterator[ListedKey]:
    """Every line of the lists in a folder. `trainval` is train and val again where it says nothing new."""
    lists = {}
    for path in sorted((raw / folder).glob("*.txt")):
        if not path.name.startswith("."):
            lists[path.stem] = _read(path, f"{folder}/{path.name}", problems)
    keys = {split: {line.keys for line in lines} for split, lines in lists.items()}
    if keys.get("trainval", set()) <= keys.get("train", set()) | keys.get("val", set()):
        lists.pop("trainval", None)
    for lines in lists.values():
        yield from lines


def _read(path: Path, shown: str, problems: list[str]) -> list[ListedKey]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{shown}: the list cannot be read ({error})")
        return []
    lines = enumerate(text.splitlines(), 1)
    return [
        ListedKey(path.stem, f"{shown}:{number}", tuple(dict.fromkeys((line.strip(), line.split()[0]))))
        for number, line in lines
        if line.strip()
    ]
