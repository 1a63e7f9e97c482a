"""A file next to the shards in which the packer keeps what it knows of one: a line of JSON, then numbers and texts.

No program needs it: if it cannot be written, or is damaged, its content is computed again, in more time.
"""

from __future__ import annotations

import json
import zlib
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from packer.publish.target import STAMPS
from readers.contract.atomic import in_folder, partial_file
from readers.contract.json_entry import loads


def write_side_file(out: Path, name: str, head: dict[str, Any], data: bytes) -> None:
    """Write a file, or leave the one before if that fails."""
    line = json.dumps({**head, "crc32": zlib.crc32(data)})
    with suppress(OSError):
        in_folder(out / STAMPS, partial(_write, out / STAMPS / name, line.encode() + b"\n" + data))


def _write(path: Path, content: bytes) -> None:
    with partial_file(path.parent) as new:
        new.write_bytes(content)
        new.replace(path)


def read_side_file(path: Path) -> tuple[dict[str, Any], bytes]:
    """Return head and data of a file. Raise OSError, or ValueError if it is damaged. The caller checks the head."""
    line, _, data = path.read_bytes().partition(b"\n")
    try:
        head = loads(line)
    except RecursionError as error:
        raise ValueError("lists in lists") from error
    if not isinstance(head, dict) or head.get("crc32") != zlib.crc32(data):
        raise ValueError("is damaged")
    return head, data
