"""The options of commands that change a pack in a store."""

from __future__ import annotations

from pathlib import Path

import click

from packer.config.options import LOCK, REFUSE

scratch_option = click.option(
    "--scratch",
    type=click.Path(path_type=Path),
    envvar="PACKER_SCRATCH",
    help="With a URL as OUT: the folder for files on their way. Default: TMPDIR.",
)
no_conditions_option = click.option(
    "--no-conditions",
    type=click.Choice((REFUSE, LOCK)),
    default=REFUSE,
    show_default=True,
    help="If the store does not keep conditional writes: stop, or take a lock.",
)
