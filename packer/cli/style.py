"""The options of how rows are drawn, which `packer sheet` and `packer show` have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict

import click

from packer.cli.loading import loading

if TYPE_CHECKING:
    from readers.row_pictures import Style

OPTIONS = (
    click.option("--field", help="The field to lay over the picture, or the picture to show. Default: the label."),
    click.option(
        "--opacity", type=click.FloatRange(0, 1), help="Opacity of the label. Default: 0.5, measured values 1."
    ),
    click.option("--class", "classes", multiple=True, help="Lay only this class over the picture. Can be repeated."),
    click.option("--outlines", is_flag=True, help="Draw the edges of classes and objects."),
    click.option("--window", type=float, nargs=2, help="The numbers to draw darkest and brightest, such as 0 4000."),
    click.option("--colour-blind", is_flag=True, help="Use colours that colour-blind people can tell apart."),
)


class StyleOptions(TypedDict):
    """The values of these options."""

    field: str | None
    opacity: float | None
    classes: tuple[str, ...]
    outlines: bool
    window: tuple[float, float] | None
    colour_blind: bool


def style_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def style_of(options: StyleOptions) -> Style:
    """Return the style that the options describe."""
    with loading():
        from readers.row_pictures import Style
    return Style(**options)
