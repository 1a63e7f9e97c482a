"""`packer extract`: rows of a pack as files again."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict
from pathlib import Path

import click

from packer.cli.loading import loading
from packer.cli.output import show
from packer.cli.progress import shown
from packer.cli.values import FolderType, NamesType, bytes_text
from packer.errors import counted

INDEX, COLOURS = "index", "colours"


@click.command("extract")
@click.argument("out", type=FolderType())
@click.argument("keys", nargs=-1)
@click.argument("folder", type=FolderType())
@click.option("--all", "every", is_flag=True, help="All rows, or all of --split, instead of some KEYS.")
@click.option("--split", help="Only rows of this split.")
@click.option("--fields", type=NamesType(), help="The fields to write. Default: all.")
@click.option(
    "--labels",
    type=click.Choice((INDEX, COLOURS)),
    default=INDEX,
    show_default=True,
    help="What a label file holds: numbers of classes, or their colours.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
def extract_command(
    out: Path,
    keys: tuple[str, ...],
    folder: Path,
    every: bool,
    split: str | None,
    fields: tuple[str, ...] | None,
    labels: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write the rows of OUT with these KEYS into FOLDER, which must be new or empty: pictures and labels as PNG, as
    .npy what PNG cannot hold, and volumes as NIfTI. The numbers are the packed numbers.

    FOLDER also gets pairs.csv and classes.csv, so that it can be packed again.

    \b
    Examples:
      packer extract out/ street_004 street_011 some/
      packer extract --all --split val --labels colours out/ val/
    """
    if bool(keys) == every:
        raise click.UsageError("name the KEYS of some rows, or --all, and the FOLDER to write to")
    with loading():
        from packer.packs.extract import extract_rows
    done = extract_rows(
        out,
        folder,
        None if every else keys,
        split=split,
        fields=fields,
        colours=labels == COLOURS,
        progress=shown(quiet),
    )
    if as_json:
        show(json.dumps(asdict(done), indent=1))
        return
    show(f"{folder}: {counted(done.rows, 'row')} in {counted(done.files, 'file')}, {bytes_text(done.bytes)}")
    if done.again:
        again = shlex.join(["packer", "build", *done.again, str(folder), "OUT"])
        show(f"the same rows again: {again}", err=True)
