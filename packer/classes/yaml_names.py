"""The names of classes in the `data.yaml` of YOLO, or in a file of one name a line."""

from __future__ import annotations

import re
from typing import Any

import yaml

from packer.errors import BadPair
from readers.contract.json_entry import repeated

MOST_NAMES = 1 << 16
"""The most names of a list; a pack has fewer classes."""
MOST_BYTES = 256 << 10
"""The most bytes of a list: a thousand names take 40 KiB, and YAML is parsed at 100 KB a second."""

KEYPOINTS = "kpt_shape"
"""The key of a data set of keypoints."""
_NAMES = re.compile(rb"""^["']?names["']?[ ]*:""", re.MULTILINE)


def names_of(data: bytes) -> tuple[str, ...]:
    """Return the names in the order of their numbers. Raise BadPair if there are none."""
    if len(data) > MOST_BYTES:
        raise BadPair(f"is larger than {MOST_BYTES >> 10} KiB, too large for a list of names")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadPair("is not text in UTF-8") from None
    document = _document(text)
    if isinstance(document, dict) and KEYPOINTS in document:
        raise BadPair(
            f"has {KEYPOINTS}, so the objects are boxes with keypoints; a label needs outlines. If the files have "
            f"outlines, remove {KEYPOINTS}"
        )
    if isinstance(document, dict) or has_names(data):
        names = _in_order(document.get("names") if isinstance(document, dict) else None)
    else:
        names = tuple(line.strip() for line in text.splitlines() if line.strip())
    if not names or len(names) > MOST_NAMES or len(set(names)) < len(names):
        raise BadPair("expected a list of different names")
    return names


def has_names(data: bytes) -> bool:
    """Return whether a YAML file of any purpose has names of classes, which may be damaged."""
    return _NAMES.search(data[:MOST_BYTES]) is not None


class _Loader(yaml.BaseLoader):  # type: ignore[misc]
    """Every value is a text. A key that occurs twice is refused: the last one would win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key.value, str)]
        if len(set(keys)) < len(keys):
            raise BadPair(f"has a table in which {repeated(keys)}; keep one")
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


def _document(text: str) -> Any:
    """Return the table of a YAML text. Every value is a text, also `no` and `0`. A list of names is something else."""
    try:
        return yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError):
        return None
    except RecursionError:
        raise BadPair("is nested too deeply") from None


def _in_order(names: Any) -> tuple[str, ...]:
    """Return the names of a list, or of a table whose keys are 0, 1, 2 and so on."""
    if isinstance(names, dict):
        numbers = [int(key) if isinstance(key, str) and key.isdecimal() else -1 for key in names]
        if sorted(numbers) != list(range(len(names))):
            raise BadPair(f"names the classes {', '.join(map(str, names))[:60]}; expected numbers from 0 on")
        names = [name for _, name in sorted(zip(numbers, names.values(), strict=True), key=lambda pair: pair[0])]
    if not isinstance(names, list) or not all(isinstance(name, str) and name.strip() for name in names):
        raise BadPair('has no names of classes; expected "names: [road, sky]"')
    return tuple(name.strip() for name in names)
