"""`packer presets`: the public data sets that --preset knows."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from packer.cli.output import show
from packer.config.preset import find_preset, preset_classes, presets


def preset_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the presets that begin with `incomplete`, for the completion of a shell."""
    return [
        CompletionItem(preset.name, help=preset.about) for preset in presets() if preset.name.startswith(incomplete)
    ]


@click.group("presets", invoke_without_command=True)
@click.pass_context
def presets_command(ctx: click.Context) -> None:
    """List the presets: name, number of classes, data set.

    \b
    Examples:
      packer presets
      packer presets show cityscapes > packer.toml
      packer build --preset cityscapes --size 512x1024 cityscapes/ out/
    """
    if ctx.invoked_subcommand is not None:
        return
    for preset in presets():
        classes = preset_classes(preset.settings())
        show(f"{preset.name:<16}{len(classes) if classes else '-':>5}  {preset.about}")


@presets_command.command("show", short_help="Print a preset's file.")
@click.argument("name", shell_complete=preset_names)
def show_command(name: str) -> None:
    """Print the file of a preset: a configuration to copy and change.

    \b
    Example:
      packer presets show voc
    """
    show(find_preset(name).text, nl=False)
