"""TOML and JSON files from any source: limited in size, and refused if a key occurs twice."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from packer.errors import SettingsError, did_you_mean
from readers.contract.json_entry import RepeatedKeyError, loads
from readers.contract.regular_files import NotRegularError, open_raw

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MOST_BYTES = 16 << 20


def read_text(path: Path) -> str:
    """Read a file of at most MOST_BYTES as UTF-8."""
    try:
        with open_raw(path) as file:
            data = file.read(MOST_BYTES + 1)
        text = data.decode("utf-8-sig")
    except NotRegularError as error:
        raise SettingsError(f"{path}: {error.strerror}") from None
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: is not UTF-8 text ({error.reason} at byte {error.start})") from error
    if len(data) > MOST_BYTES:
        raise SettingsError(
            f"{path}: is larger than {MOST_BYTES >> 20} MiB, too large for a class table or configuration"
        )
    return text


def parse_toml(path: Path, text: str) -> dict[str, Any]:
    """Parse TOML; an error names the file and the line."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path}: is not valid TOML ({error})") from error


def parse_json(path: Path, text: str) -> Any:
    """Parse JSON without repeated keys; an error names the file and the line."""
    try:
        return loads(text)
    except RepeatedKeyError as error:
        raise SettingsError(f"{path}: has a table in which {error}; keep one") from error
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path}: is not valid JSON ({error})") from error


def unknown_key(key: str, keys: list[str]) -> str:
    """Return the second half of a message about an unknown key, with the nearest known key."""
    return "is not known" + (did_you_mean(key, keys) or f"; known are {', '.join(keys)}")


def describe(value: object) -> str:
    """Describe a value for a message: its type and its first characters, such as `the number 7` or `'abc'`."""
    if isinstance(value, str):
        return repr(value[:40])
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    types = {int: "number", float: "number", list: "list", dict: "table"}
    return f"the {types.get(type(value), type(value).__name__)} {str(value)[:40]}"
