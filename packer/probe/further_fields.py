"""Find files next to the pairs that have their keys: further fields, such as depth or instances."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from packer.errors import BadPair
from packer.pairs.find import Pairing
from packer.pairs.template import PICTURES, composed
from packer.sources.files.folder import FolderSource
from readers.contract.field_entry import NAME
from readers.contract.fields import IMAGE, LABEL
from readers.contract.kinds import IDS, PICTURE, VALUES
from readers.contract.manifest import ALL

LEAST_SHARE = 0.5
"""A field has a file for at least this share of the pairs."""
MOST_FIELDS = 8
KINDS = {
    VALUES: ("depth", "disparity", "height", "elevation", "dem", "dsm", "ndsm", "dtm"),
    IDS: ("instance", "instances", "inst", "ids", "objects", "panoptic"),
    PICTURE: ("nir", "ir", "thermal", "infrared", "right"),
}
"""Names that say what a field is."""


@dataclass(frozen=True)
class FurtherField:
    """A field that a build could take, as a text of --field, and its files."""

    text: str
    files: tuple[str, ...]


def further_fields(files: Sequence[str], pairing: Pairing, source: FolderSource) -> tuple[FurtherField, ...]:
    """Return the fields whose names or files say what they are. A template has the keys, and the splits if it must."""
    used = {composed(path) for pair in pairing.pairs for path in (pair.image, pair.label)}
    splits: dict[str, list[str]] = {}
    for pair in pairing.pairs:
        splits.setdefault(composed(pair.key), []).append(pair.split)
    paths_of: dict[str, dict[tuple[str, str], str]] = {}
    for path in files:
        if composed(path) in used or not path.lower().endswith(PICTURES):
            continue
        for template, key in _templates(path, splits):
            paths_of.setdefault(template, {}).setdefault(key, path)
    fields: dict[str, FurtherField] = {}
    for template in sorted(paths_of):
        paths = tuple(paths_of[template].values())
        if len(paths) >= LEAST_SHARE * len(pairing.pairs):
            name, text = _described(template, paths[0], source, set(fields))
            if NAME.fullmatch(name) and name not in (IMAGE, LABEL):
                fields[name] = FurtherField(text, paths)
    return tuple(fields.values())[:MOST_FIELDS]


def _templates(path: str, splits: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the templates that give a file the key of a pair, also with an ending such as _depth; and split and key.

    `splits` has the splits of each key.
    """
    stem, dot, suffix = path.rpartition(".")
    for ending in ("", *re.findall(r"[_-][A-Za-z]+$", stem)):
        start = stem.removesuffix(ending)
        for cut in [0, *(slash.end() for slash in re.finditer("/", start))]:
            key, folders = composed(start[cut:]), start[:cut].split("/")[:-1]
            splits_of_key = splits.get(key, ())
            named = [split for split in splits_of_key if split in folders and split != ALL]
            if len(named or splits_of_key) == 1:
                split = (named or splits_of_key)[0]
                folder = "".join("{split}/" if name == split else f"{name}/" for name in folders)
                yield f"{folder}{{key}}{ending}{dot}{suffix}", (split, key)


def _described(template: str, path: str, source: FolderSource, taken: Set[str]) -> tuple[str, str]:
    """Return a name and the text of --field for these files; no name if neither words nor types say what they are."""
    try:
        header = source.header(path)
    except BadPair:
        return "", ""
    is_plain = header.dtype == "|u1" and not header.extra
    words = re.findall("[a-z][a-z0-9]*", re.sub(r"\{(split|key)\}|\.\w+$", " ", template.lower()))
    is_measured = header.channels == 1 and (header.is_float or header.depth > 8)
    kinds = [(word, kind) for word in reversed(words) for kind, names in KINDS.items() if word in names]
    if is_measured and words:
        kinds.append((words[-1], VALUES))
    if not kinds:
        return "", ""
    name, kind = kinds[0]
    names = (name, "_".join(words), *(f"{name}_{number}" for number in range(2, len(taken) + 3)))
    name = next(free for free in names if free not in taken)
    return name, _text(name, kind, template, is_plain)


def _text(name: str, kind: str, template: str, is_plain: bool) -> str:
    """Return a text of --field. A picture that is not of 8 bits, or has many bands, is stored unchanged."""
    if kind == PICTURE and not is_plain:
        return json.dumps({"name": name, "kind": kind, "from": template, "bands": "all"})
    return f"{name}={kind}:{template}"
