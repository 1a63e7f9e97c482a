"""`--version`: the version, and the kernels that are in use."""

from __future__ import annotations

import click

from packer.cli.output import show
from readers.contract import VERSION
from readers.contract.kernels import kernels_in_use

KERNELS = (
    "packer.annotations.canvas_kernel",
    "packer.annotations.even_odd_kernel",
    "packer.annotations.outline_kernel",
    "packer.decoding.tiff.lzw_kernel",
    "packer.decoding.unfilter_kernel",
    "packer.pixels.area_kernel",
    "packer.pixels.distinct_kernel",
    "packer.pixels.sample_kernel",
    "readers.contract.cells_kernel",
    "readers.contract.onehot_kernel",
    "readers.formats.gather_kernel",
    "readers.formats.planes_kernel",
    "readers.scale_kernel",
    "readers.swap_kernel",
    "readers.tile_kernel",
    "readers.tone_kernel",
    "readers.window_kernel",
)
"""Every kernel that is compiled when the package is installed."""


def kernels_text() -> str:
    """Name the instructions of the kernels that this process uses, and the kernels that are missing."""
    return f"kernels: {kernels_in_use(KERNELS)}"


def version_option(command: click.Group) -> click.Group:
    """Add --version to the command line."""
    help_text = "Show the version and the kernels in use, and exit."
    option = click.option(
        "-V", "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show, help=help_text
    )
    return option(command)


def _show(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        show(f"packer, version {VERSION}\n{kernels_text()}")
        ctx.exit()
