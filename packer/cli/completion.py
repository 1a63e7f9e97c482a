"""`packer completion`: the script with which a shell completes commands, options and their values."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from packer.cli.output import show

NAMES = ("packer", "segpack")
SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion_command(ctx: click.Context, shell: str) -> None:
    """Print the script with which SHELL completes commands, options, their values and file names.

    The script is for the name that prints it: packer or segpack.

    \b
    Example:
      source <(packer completion bash)                # in ~/.bashrc
      source <(packer completion zsh)                 # in ~/.zshrc, after compinit
      packer completion fish > ~/.config/fish/completions/packer.fish
    """
    root, complete = ctx.find_root(), get_completion_class(shell)
    assert complete is not None  # click knows these shells
    name = root.info_name if root.info_name in NAMES else NAMES[0]
    show(complete(root.command, {}, name, f"_{name.upper()}_COMPLETE").source())
