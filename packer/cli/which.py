"""`packer which`: find the rows that a raw file went into."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from packer.cli.loading import loading
from packer.cli.output import join_lines, show
from packer.cli.text_table import text_table
from packer.errors import InputError
from readers.contract.errors import DamagedError, ReadError

if TYPE_CHECKING:
    from packer.packs.which import RowOfFile


@click.command("which")
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("folders", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def which_command(file: Path, folders: tuple[str, ...], as_json: bool) -> None:
    """Find the rows that the raw FILE went into, in every kept generation of the packs in FOLDERS,
    folders or URLs; by default the current folder. Exit 1 if there is none.

    FILE is found by its bytes, also where it had another path. If it is gone, it is found by its path.

    \b
    Example:
      packer which raw/train/images/street_004.png out/
      packer which raw/train/images/street_004.png /data/packs s3://bucket/out
    """
    with loading():
        from packer.packs.which import rows_of_file
    places, damage = folders or (".",), list[ReadError]()
    rows = rows_of_file(file, places, damage.append)
    if as_json:
        show(json.dumps(list(map(asdict, rows)), indent=1, ensure_ascii=False))
    elif rows:
        show(
            join_lines(
                text_table([["pack", "generations", "row", "fields", "read"], *map(list, _cells(rows))], left=range(5))
            )
        )
    if damage:
        raise DamagedError("\n".join([f"{file}: may have gone into rows that cannot be read:", *map(str, damage)]))
    if not rows:
        raise InputError(f"{file}: went into no row of the packs in {', '.join(places)}")


def _cells(rows: list[RowOfFile]) -> Iterator[tuple[str, ...]]:
    for row in rows:
        read = row.path or "at a path that is not known any more"
        how = f"{read}, then with other bytes" if row.same_bytes is False else read
        numbers = ", ".join(map(str, row.generations))
        yield row.pack, numbers, f"{row.split}/{row.key}", ", ".join(row.fields), how
