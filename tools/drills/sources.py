"""Give a drill what it builds from: pairs, also with further fields, a pack of them, functions, or annotations."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from scenes.outlines import COCO, LABELME

from packer import Rows, build_pack, repair_pack
from packer.cli import main as packer
from packer.pairs.find import find_pairs
from readers.contract.manifest import ALL

FOLDER, FIELDS, PACK, ROWS = "folder", "fields", "pack", "rows"
OUTLINED = (LABELME, COCO)
SOURCES = (FOLDER, FIELDS, PACK, ROWS, *OUTLINED)
BUILD_ROWS, REPAIR_ROWS = "build-rows", "repair-rows"
"""Commands of `run_command`, because the packer has none for functions."""
PARTS = "parts"
"""A command of `run_command` that builds a plan by parts and commits it: `parts OUT PLAN`."""
WITH_TMPDIR = "with-tmpdir"
"""A command of `run_command`: it is followed by a folder for temporary files, and by a command of the packer."""
Item = Any
"""A key, or a split and a key."""


def read(paths: dict[Item, tuple[str, str]], item: Item) -> dict[str, bytes]:
    """Return the bytes of the files of a row. Only plain files end."""
    for path in paths[item]:
        if not Path(path).is_file():
            raise ValueError(f"{Path(path).name} is not a file")
    image, label = (Path(path).read_bytes() for path in paths[item])
    return {"image": image, "label": label}


def version(paths: dict[Item, tuple[str, str]], item: Item) -> str | None:
    """Return the size and the times of the files of a row, None if one is not a plain file."""
    if not all(Path(path).is_file() for path in paths[item]):
        return None
    facts = (Path(path).stat() for path in paths[item])
    return repr([(fact.st_size, fact.st_mtime_ns, fact.st_ctime_ns) for fact in facts])


def rows_of(raw: Path, size: tuple[int, int] | None = None) -> Rows:
    """Return the pairs of a folder as rows of functions."""
    pairs = find_pairs(raw).pairs
    items = [pair.key if pair.split == ALL else (pair.split, pair.key) for pair in pairs]
    files = ((str(raw / pair.image), str(raw / pair.label)) for pair in pairs)
    paths = dict(zip(items, files, strict=True))
    return Rows(items, partial(read, paths), partial(version, paths), size)


def run_command(arguments: Sequence[str]) -> None:
    """Run a command line of the packer, perhaps after `with-tmpdir FOLDER`; or `build-rows JSON RAW OUT` with options
    as JSON, or `repair-rows OUT RAW`, or `parts OUT PLAN`."""
    command, *rest = arguments
    if command == BUILD_ROWS:
        build_pack(rows_of(Path(rest[1])), rest[2], **json.loads(rest[0]))
    elif command == REPAIR_ROWS:
        repair_pack(rest[0], rows_of(Path(rest[1])))
    elif command == PARTS:
        build = ["build-part", "--quiet", "--workers", "2", "--plan", rest[1], "--part"]
        for command_line in (
            [*build, "2/2", rest[0]],
            [*build, "1/2", rest[0]],
            ["commit", "--plan", rest[1], rest[0]],
        ):
            _run_to_the_end(command_line)
    elif command == WITH_TMPDIR:
        if not Path(rest[0]).is_dir():
            Path(rest[0]).mkdir()
        os.environ["TMPDIR"] = tempfile.tempdir = rest[0]
        packer(rest[1:], prog_name="packer")
    else:
        packer(list(arguments), prog_name="packer")


def _run_to_the_end(arguments: list[str]) -> None:
    """Run a command line, after which this process goes on unless it has failed."""
    try:
        packer(arguments, prog_name="packer")
    except SystemExit as ended:
        if ended.code:
            raise


def announced() -> None:
    """Print a line, because everything is imported, then run the command line of this process."""
    print(flush=True)
    run_command(sys.argv[1:])
