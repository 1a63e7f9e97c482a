"""`packer extract`: rows of a pack as files again."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from packer.cli.loading import loading
from packer.cli.output import show
from packer.cli.progress import shown
from packer.cli.values import FolderType, NamesType, bytes_text
from packer.errors import counted

if TYPE_CHECKING:
    from packer.packs.extract import Extracted
    from readers.band import Weight

INDEX, COLOURS = "index", "colours"
LAYOUTS = ("coco", "imagefolder", "nnunet", "ultralytics", "voc")


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
@click.option("--predictions", type=FolderType(), help="Write these predictions instead: a folder of KEY.npy.")
@click.option(
    "--weight",
    type=click.Choice(("clip", "average", "gaussian")),
    help="With --predictions: what counts where tiles overlap.  [default: clip]",
)
@click.option("--fill", type=float, help="With --predictions: the number of pixels in tiles without a prediction.")
@click.option("--argmax", is_flag=True, help="With --predictions: write the class with the highest score.")
@click.option(
    "--layout", type=click.Choice(LAYOUTS), help="With --all: write the folder that this trainer reads, not pairs."
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
    predictions: Path | None,
    weight: Weight | None,
    fill: float | None,
    argmax: bool,
    layout: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write the rows of OUT with these KEYS into FOLDER, which must be new or empty: pictures and labels as PNG, as
    .npy what PNG cannot hold, maps as GeoTIFF and volumes as NIfTI. The numbers are the packed numbers.

    FOLDER also gets pairs.csv and classes.csv, so that it can be packed again. With --predictions it gets a file for
    each picture, stitched from its tiles: GeoTIFF and NIfTI with the place of the picture.

    \b
    Examples:
      packer extract out/ street_004 street_011 some/
      packer extract --all --split val --labels colours out/ val/
      packer extract --all --layout coco out/ coco/
      packer extract --predictions scores/ --split val --argmax out/ maps/
    """
    if layout is not None:
        others = predictions or weight or fill is not None or argmax
        if keys or not every or fields or labels != INDEX or others:
            raise click.UsageError("--layout writes all rows: it needs --all, and takes only --split besides it")
        with loading():
            from packer.packs.extract_layout import extract_layout
        _show(folder, extract_layout(out, folder, layout, split=split, progress=shown(quiet)), as_json)
        return
    if predictions is not None:
        if keys or every or fields or labels != INDEX:
            raise click.UsageError(
                "--predictions writes all pictures that have some; leave out KEYS, --all, --fields and --labels"
            )
        _extract_predictions(out, predictions, folder, split, (weight or "clip", fill, argmax), as_json, quiet)
        return
    if weight or fill is not None or argmax:
        raise click.UsageError("--weight, --fill and --argmax need --predictions")
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
    _show(folder, done, as_json)


def _show(folder: Path, done: Extracted, as_json: bool) -> None:
    if as_json:
        show(json.dumps(asdict(done), indent=1))
        return
    show(f"{folder}: {counted(done.rows, 'row')} in {counted(done.files, 'file')}, {bytes_text(done.bytes)}")
    if done.again:
        again = shlex.join(["packer", "build", *done.again, str(folder), "OUT"])
        show(f"the same rows again: {again}", err=True)


def _extract_predictions(
    out: Path,
    predictions: Path,
    folder: Path,
    split: str | None,
    stitching: tuple[Weight, float | None, bool],
    as_json: bool,
    quiet: bool,
) -> None:
    with loading():
        from packer.packs.extract_predictions import Stitching, extract_predictions
    written = extract_predictions(
        out, predictions, folder, split=split, stitching=Stitching(*stitching), progress=shown(quiet)
    )
    if as_json:
        show(json.dumps(asdict(written), indent=1))
        return
    left_out = f"; {counted(written.left_out, 'picture')} without a prediction" if written.left_out else ""
    show(
        f"{folder}: {counted(written.pictures, 'picture')} of {counted(written.rows, 'row')}, "
        f"{bytes_text(written.bytes)}{left_out}"
    )
