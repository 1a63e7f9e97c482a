"""TOML and JSON documents that nobody vouches for: small enough, whole, and no key said twice."""

from __future__ import annotations

import json
import sys
from collections import Counter
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from packer.errors import InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MOST_BYTES = 16 << 20


def read_text(path: Path) -> str:
    """The text of a file that is not larger than any class table is."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 text ({error.reason} at byte {error.start})") from error
    if len(data) > MOST_BYTES:
        raise InputError(f"{path}: is larger than {MOST_BYTES >> 20} MiB, which no class table or configuration is")
    return text


def parse_toml(path: Path, text: str) -> dict[str, Any]:
    """A TOML document, or where it is none."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is no TOML ({error})") from error


def parse_json(path: Path, text: str) -> Any:
    """A JSON document, or where it is none."""
    try:
        return json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is no JSON ({error})") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {twice!r} is there twice")
    return found


def unknown_key(key: str, known: list[str]) -> str:
    """What to say of a key that nobody knows."""
    near = get_close_matches(key, known, n=1)
    return f"is not known; did you mean {near[0]}?" if near else f"is not known; known are {', '.join(known)}"


def kind(value: object) -> str:
    """What a value is, in words, and its beginning."""
    kinds = {bool: "true or false", int: "a number", float: "a number", str: "a text", list: "a list", dict: "a table"}
    return f"{kinds.get(type(value), type(value).__name__)} {str(value)[:40]!r}"
