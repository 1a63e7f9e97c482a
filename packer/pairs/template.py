"""Path templates: `images/{split}/{key}_img.png` matches paths and captures their split, key and other parts."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from packer.errors import UsageError

SLIDES = (".svs", ".ndpi", ".mrxs", ".scn", ".bif")
"""Suffixes of slides, which openslide reads."""
PICTURES = (".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".tif", ".tiff", ".jp2", ".j2k", ".bmp", ".webp", ".npy", *SLIDES)
"""Suffixes of pictures that can be packed. Of others than slides the content of a file decides which format it has."""
CAMERA_RAW = (".nef", ".cr2", ".cr3", ".arw", ".dng", ".orf", ".raf", ".rw2", ".pef", ".srw")
SCANS = (".dcm", ".mha", ".nrrd")
DEEP_PICTURES = (".exr", ".czi", ".nd2", ".lif", *SCANS, *CAMERA_RAW)
"""Suffixes of pictures that cannot be packed, and often have more than 8 bits."""
OTHER_PICTURES = (
    *(".gif", ".jxl", ".heic", ".heif", ".avif", ".tga", ".pcx", ".psd"),
    *(".ppm", ".pgm", ".pbm", ".pnm"),
    *DEEP_PICTURES,
)
"""Suffixes of pictures that cannot be packed."""

SHAPEFILE = ".shp"
VECTORS = (SHAPEFILE, ".gpkg")
"""Suffixes of shapes on the ground, which GDAL reads."""
ANNOTATIONS = (".json", ".geojson", ".xml", ".txt", *VECTORS)
"""Suffixes of files of annotations. A template without one of all these suffixes fits every picture."""

SPLIT, KEY, CHANNEL = "split", "key", "channel"
_PART = re.compile(r"\{(?P<name>[A-Za-z_]\w*)(?::(?P<choices>[^{}]+))?\}|(?P<star>\*)|(?P<text>[^{}*]+|[{}])", re.ASCII)
_CHANNEL = re.compile(r"\{channel[:}]")
_STAR_IN_SUFFIX = re.compile(r"\.[^./{}]*\*[^./{}]*$")
_FORMS = {KEY: ".+", CHANNEL: "(?<![^/])[^/]+(?=/)|[^/_]+"}
"""The forms of captures that are not any text without a slash."""
_ANY_PICTURE = "(?:" + "|".join(re.escape(suffix) for suffix in PICTURES) + ")"


class FixedEnds(NamedTuple):
    """A template whose last part is `{key}` between two texts. The pattern is for the folders before it."""

    folders: re.Pattern[str]
    depth: int
    """The number of these folders."""
    before: str
    after: str
    suffixes: tuple[str, ...]


@dataclass(frozen=True)
class Template:
    """A path below the raw folder with captures.

    A capture that is named twice has one text: `{key}/{key}_{channel}.jp2`. `{key}` may contain slashes, `{split}` and
    all others may not. `{split:train|val}` is one of the choices. `*` is any text within a name. Captures take as much
    as they can, `*` as little. `{channel}` is the name of a folder, or a part of a name without `_`. A template without
    the suffix of a picture fits all of them, and so does `.*`. Capitals in the suffix and the form of accents do not
    matter.
    """

    text: str

    def __post_init__(self) -> None:
        if KEY not in self.captures:
            captures = ", ".join(f"{{{name}}}" for name in self.captures) or "none"
            raise UsageError(f"template {self.text!r}: needs {{{KEY}}}; it has {captures}")

    @property
    def captures(self) -> list[str]:
        """The names of the captures, each once. Where one is named again, its text is there again."""
        return list(dict.fromkeys(part["name"] for part in _PART.finditer(self.text) if part["name"]))

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders of all possible matches, each with its slash; an empty text means any folder."""
        starts = [""]
        for part in _PART.finditer(self._plain):
            if not part["text"] and not part["choices"]:
                break
            endings = part["choices"].split("|") if part["choices"] else [part["text"]]
            starts = [start + ending for start in starts for ending in endings]
        return tuple(start[: start.rfind("/") + 1] for start in starts)

    @property
    def suffix(self) -> str:
        """The suffix of a picture or of annotations at the end of the template; empty if it fits all pictures."""
        text = self._plain
        ends = (*PICTURES, *OTHER_PICTURES, *ANNOTATIONS)
        return next((text[-len(end) :] for end in ends if text.lower().endswith(end)), "")

    @property
    def literal(self) -> int:
        """The number of fixed characters: the more there are, the more specific the template."""
        return sum(len(part["text"]) for part in _PART.finditer(self.text) if part["text"])

    def match(self, path: str) -> re.Match[str] | None:
        """Match a path; return None if it does not fit."""
        return self.pattern.fullmatch(composed(path))

    def fits_below(self, folder: str) -> bool:
        """Return whether files in a folder, or in a folder in it, could match. The template gives them their names."""
        last = _PART.finditer(self._plain.rpartition("/")[2])
        name = "".join(part["text"] or (part["choices"] or "x").partition("|")[0] for part in last)
        prefixes = (folder, f"{folder}/x")
        return any(self.match(f"{prefix}/{name}{suffix}") for prefix in prefixes for suffix in ("", ".png"))

    @cached_property
    def fixed_ends(self) -> FixedEnds | None:
        """The template in parts, if `{key}` is all that varies after its folders; else None."""
        body = self._plain[: len(self._plain) - len(self.suffix)]
        folders, name = body[: body.rfind("/") + 1], body[body.rfind("/") + 1 :]
        before, key, after = name.partition(f"{{{KEY}}}")
        varies = any(not part["text"] for part in _PART.finditer(before + after)) or f"{{{KEY}" in folders
        if not key or varies or any("/" in (part["choices"] or "") for part in _PART.finditer(body)):
            return None
        pattern = re.compile(_regex_of(folders), re.DOTALL)
        return FixedEnds(
            pattern, folders.count("/"), before, after, (self.suffix.lower(),) if self.suffix else PICTURES
        )

    @property
    def _plain(self) -> str:
        return composed(self.text.removeprefix("./"))

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The regular expression for composed paths."""
        text, starred = self._plain, _STAR_IN_SUFFIX.search(self._plain)
        if starred:  # as in {key}.*
            suffix = starred[0]
            end = f"(?i:(?=[^/]*{_ANY_PICTURE}\\Z){_regex_of(suffix)})"
        else:
            suffix = self.suffix
            end = f"(?i:{re.escape(suffix) or _ANY_PICTURE})"
        pattern = _regex_of(text[: len(text) - len(suffix)]) + end
        return re.compile(pattern, re.DOTALL)  # a name may even contain a line break


def conversion(path: str) -> str:
    """Return what to do with a picture that cannot be packed."""
    if path.lower().endswith(SCANS):
        return "pack its folder as volumes with --from, or convert it to TIFF"
    return "convert it to TIFF" if path.lower().endswith(DEEP_PICTURES) else "convert it to PNG"


def composed(name: str) -> str:
    """Write each accented letter as one character (NFC). Archives made on a Mac have two for some."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def _regex_of(text: str) -> str:
    """Return the regular expression of a text with captures and stars."""
    seen = set[str]()
    return "".join(_regex(part, seen) for part in _PART.finditer(text))


def _regex(part: re.Match[str], seen: set[str]) -> str:
    """Return the regular expression of one part of a template, and add its name to those before it."""
    name, choices = part["name"], part["choices"]
    if name in seen:
        return f"(?P={name})"
    if name:
        seen.add(name)
    if name and choices:
        return f"(?P<{name}>{'|'.join(re.escape(choice) for choice in choices.split('|'))})"
    if name:
        return f"(?P<{name}>{_FORMS.get(name, '[^/]+')})"
    return "[^/]*?" if part["star"] else re.escape(part["text"])


def without_files(template: Template) -> Template:
    """Return a template with the same captures that no path fits: the label of rows without labels."""
    return Template("/".join(["\0", *(f"{{{name}}}" for name in template.captures if name != CHANNEL)]))


def has_channels(text: str) -> bool:
    """Return whether the files of a template are the bands of pictures: the files of one key are one."""
    return _CHANNEL.search(text) is not None
