"""`packer help`: the help of a command, as `--help` prints it."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from packer.cli.output import show


def _names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the commands that begin with `incomplete`, for the completion of a shell."""
    context = _context_of(ctx, ctx.params.get(str(param.name)) or ())
    names = context.command.list_commands(context) if isinstance(context.command, click.Group) else []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


@click.command("help")
@click.argument("command", nargs=-1, shell_complete=_names)
@click.pass_context
def help_command(ctx: click.Context, command: tuple[str, ...]) -> None:
    """Show the help of COMMAND, as packer COMMAND --help does; without COMMAND, list all commands.

    \b
    Example:
      packer help build
      packer help presets show
    """
    context = _context_of(ctx, command)
    show(context.command.get_help(context))


def _context_of(ctx: click.Context, words: tuple[str, ...]) -> click.Context:
    """Return a context of the command that these words name."""
    context = ctx.find_root()
    for word in words:
        if not isinstance(context.command, click.Group):
            raise click.UsageError(f"{context.command_path} has no command {word!r}", ctx)
        name, command, _ = context.command.resolve_command(context, [word])
        assert command is not None  # resolve_command refuses an unknown name
        context = click.Context(command, info_name=name, parent=context)
    return context
