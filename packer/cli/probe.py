"""`packer probe`: what a raw folder is, and the configuration that would pack it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from packer.cli.configured import build_option
from packer.cli.loading import loading
from packer.cli.output import show
from packer.cli.page import show_page
from packer.cli.values import CountType, OutputFile
from packer.errors import InputError, UsageError, counted
from packer.publish.atomic import write_atomic


@click.command("probe")
@click.argument("raw", type=click.Path())
@build_option("image")
@build_option("label")
@build_option("lists")
@build_option("pairs")
@build_option("classes")
@build_option("ignore")
@click.option(
    "--sample",
    type=CountType(),
    default="64",
    show_default=True,
    help="Number of pairs to decode. All headers are read.",
)
@build_option("near-duplicates")
@build_option("workers")
@build_option("task-timeout")
@click.option("--write", type=OutputFile(), help="Write the proposal to this TOML file.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def probe_command(raw: str, as_json: bool, write: Path | None, **options: Any) -> None:
    """Inspect RAW: layout, pairs, file types, sizes, what the labels hold, what is unusual, and how to pack it.

    \b
    Example:
      packer probe raw/
      packer probe --write packer.toml raw/
      packer build --config packer.toml raw/ out/
    """
    if write is not None and write.exists():
        raise UsageError(f"--write {write}: exists already; name another file, or remove it")
    with loading(workers=True):
        from packer.cli.probe_text import probe_json, probe_text, probe_toml
        from packer.probe.probe import probe_folder
        from packer.probe.volumes import VOLUMES
    result = probe_folder(raw, **options)
    if as_json:
        show(json.dumps(probe_json(result), indent=1, ensure_ascii=False))
    else:
        show_page(probe_text(raw, result))
    if result.pairing is None and result.annotated is None:
        raise InputError(result.why_not or f"{raw}: no image and label form a pair")
    if write is not None:
        write_atomic(write, probe_toml(result))
        first = f"decide what it asks ({counted(len(result.doubts), 'line')}), then " if result.doubts else ""
        option = "--from " if result.pairing is not None and result.pairing.layout == VOLUMES else ""
        show(f"wrote {write}; next: {first}packer build --config {write} {option}{raw} out/", err=True)
