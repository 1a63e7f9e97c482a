"""Find the files of an archive that belong together: one of images, such as train_images.rec, and one of masks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from packer.errors import InputError
from packer.sources.archives.field_names import IMAGE_WORDS, LABEL_WORDS
from packer.sources.container import Names

IMAGE, LABEL = "image", "label"
_SUFFIX = re.compile(r"\.rec$")
_WORDED = r"(?:(.*)[-_./])?(?:{})(?:[-_./](.*))?"


class Role(NamedTuple):
    """Says that the records of a file are images or labels, and has the name that two files share."""

    field: str
    name: str


def roles_of(files: Iterable[str], names: Names) -> dict[str, Role]:
    """Return the role of each file that has one. Two files may not have the same."""
    roles = {file: role for file in files if (role := _role(_SUFFIX.sub("", file), names))}
    taken = dict[Role, str]()
    for file, role in roles.items():
        if taken.setdefault(role, file) != file:
            raise InputError(f"{taken[role]} and {file}: both may be the {role.field}s; name them: --image, --label")
    return roles


def _role(stem: str, names: Names) -> Role | None:
    """Return the role of a file by the given names; without them a word shows it, and what has no word is an image."""
    for field, name, words in ((LABEL, names.label, LABEL_WORDS), (IMAGE, names.image, IMAGE_WORDS)):
        pattern = re.compile(_WORDED.format(words), re.IGNORECASE) if name is None else _described(name)
        if match := pattern.fullmatch(stem):
            return Role(field, "/".join(filter(None, match.groups())))
    return Role(IMAGE, stem) if names.image is None else None


def _described(name: str) -> re.Pattern[str]:
    """Return the pattern of --image or --label: the name of a file, which may have {split}."""
    before, split, after = _SUFFIX.sub("", name).partition("{split}")
    return re.compile(f"{re.escape(before)}{'([^/]+)' if split else ''}{re.escape(after)}")
