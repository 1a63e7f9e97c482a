"""Path templates: `images/{split}/{key}_img.png` matches paths, and gives the parts that its captures stand for."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property

from packer.errors import UsageError

PICTURES = (".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".tif", ".tiff", ".bmp", ".webp")
"""What a picture's name may end with; the content decides what it really is."""
OTHER_PICTURES = (".gif", ".jp2", ".ppm", ".pgm", ".exr", ".heic", ".avif", ".jxl", ".npy")
"""What is a picture too, but not one of those that can be packed."""

SPLIT, KEY = "split", "key"
_PART = re.compile(r"\{(?P<name>[A-Za-z_]\w*)(?::(?P<choices>[^{}]+))?\}|(?P<star>\*)|(?P<text>[^{}*]+|[{}])", re.ASCII)
_ANY_PICTURE = "(?:" + "|".join(re.escape(suffix) for suffix in PICTURES) + ")"


@dataclass(frozen=True)
class Template:
    """A path below the raw folder with captures: `{key}` may hold slashes, `{split}` and others not, `*` is anything
    within a name, `{split:train|val}` is one of these. Captures take as much as they can, `*` as little. Without a
    picture's suffix, any of them fits; capitals in the suffix and the way accents are written do not matter."""

    text: str

    def __post_init__(self) -> None:
        names = self.captures
        if KEY not in names or len(set(names)) != len(names):
            found = ", ".join(f"{{{name}}}" for name in names) or "none"
            raise UsageError(f"template {self.text!r}: needs {{{KEY}}} once, and no capture twice; it has {found}")

    @property
    def captures(self) -> list[str]:
        return [part["name"] for part in _PART.finditer(self.text) if part["name"]]

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders that all matches lie in, each with its slash; the empty text where they may lie anywhere."""
        starts = [""]
        for part in _PART.finditer(self._plain):
            if not part["text"] and not part["choices"]:
                break
            endings = part["choices"].split("|") if part["choices"] else [part["text"]]
            starts = [start + ending for start in starts for ending in endings]
        return tuple(start[: start.rfind("/") + 1] for start in starts)

    @property
    def literal(self) -> int:
        """How many characters are fixed: the more, the more a match says."""
        return sum(len(part["text"]) for part in _PART.finditer(self.text) if part["text"])

    def match(self, path: str) -> re.Match[str] | None:
        """What each capture stands for in a path, by its name, or None if the path does not fit."""
        return self.pattern.fullmatch(composed(path))

    @property
    def _plain(self) -> str:
        return composed(self.text.removeprefix("./"))

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """What composed paths match."""
        text = self._plain
        suffix = next((one for one in (*PICTURES, *OTHER_PICTURES) if text.lower().endswith(one)), "")
        pattern = "".join(_regex(part) for part in _PART.finditer(text[: len(text) - len(suffix)]))
        pattern += f"(?i:{re.escape(suffix) or _ANY_PICTURE})"
        return re.compile(pattern, re.DOTALL)  # a name may even hold a line break


def composed(name: str) -> str:
    """The name with each accented letter as one character (NFC): archives made on a Mac hold two for some."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def _regex(part: re.Match[str]) -> str:
    """The regular expression of one part of a template."""
    name, choices = part["name"], part["choices"]
    if name and choices:
        return f"(?P<{name}>{'|'.join(re.escape(choice) for choice in choices.split('|'))})"
    if name:
        return f"(?P<{name}>{'.+' if name == KEY else '[^/]+'})"
    return "[^/]*?" if part["star"] else re.escape(part["text"])
