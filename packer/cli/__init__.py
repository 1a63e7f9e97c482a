"""The command line: parse, call, print, exit. Data goes to stdout, words go to stderr."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from packer.cli.answer import answer_failure, begin_answer, note_json
from packer.cli.exit_code import exit_code
from packer.cli.log import LOG, TEXT
from packer.cli.output import show
from packer.cli.version import version_option
from packer.errors import PackError
from packer.signals import StoppedError, ended_by_signals
from readers.contract.errors import ReadError

PUBLISHING = ("build", "commit", "pull", "push", "repair", "rollback", "stage")
STOPPED = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated", signal.SIGHUP: "hung up"}
MOST_LINES = 20
"""A longer error repeats its first line at the end, because the top has scrolled away."""


GROUPS = {
    "Pack": {
        "probe": ("probe", "Inspect a raw folder and propose a configuration."),
        "presets": ("presets", "List the presets."),
        "build": ("build", "Pack a raw folder."),
        "plan": ("plan", "Write a plan, whose parts other machines build."),
        "build-part": ("build_part", "Build a part of a plan, on any machine."),
        "commit": ("commit", "Publish the parts of a plan."),
    },
    "Look": {
        "info": ("info", "Show the contents of a pack."),
        "show": ("show_row", "Draw a row in the terminal."),
        "sheet": ("sheet", "Draw rows with their labels into a file."),
        "view": ("view", "Browse the rows of a pack in the browser."),
        "report": ("report", "Write a page about a pack in one file."),
        "stats": ("stats", "Show mean, deviation, classes and their weights."),
        "inspect": ("inspect", "Show where a row is stored, and where it came from."),
        "which": ("which", "Find the rows that a raw file went into."),
        "extract": ("extract", "Write rows of a pack as files again."),
        "card": ("card", "Write the card of a data set."),
    },
    "Keep": {
        "verify": ("verify", "Check every byte of a packed data set."),
        "repair": ("repair", "Build damaged shards again."),
        "index": ("index", "Count the classes in packs of older releases."),
        "diff": ("diff", "Show what a build would change."),
        "log": ("generations", "List the generations."),
        "rollback": ("generations", "Make an older generation current."),
        "unpin": ("generations", "Let builds publish again after rollback --pin."),
        "forget": ("forget", "Remove a row from every kept generation, with a proof."),
        "gc": ("gc", "Delete shards that only old generations use."),
    },
    "Move": {
        "stage": ("stage", "Copy a pack to a local disk or into memory."),
        "push": ("push", "Copy a pack to a store."),
        "pull": ("push", "Copy a pack from a store to a folder."),
    },
    "Measure": {
        "bench": ("bench", "Measure how fast a pack reads here, and recommend a loader."),
        "diagnose": ("diagnose", "Run a training script, and report what it waits for."),
    },
    "Help": {
        "help": ("help", "Show the help of a command."),
        "completion": ("completion", "Print a script that completes commands in a shell."),
    },
}
"""The module and the short help of each command. `packer --help` and completion need no more."""
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}


class LazyCommands(Mapping[str, click.Command]):
    """The commands by name. A command is imported when it is looked up."""

    def __getitem__(self, name: str) -> click.Command:
        module, short_help = COMMANDS[name]
        command: click.Command = getattr(import_module(f"packer.cli.{module}"), f"{name.replace('-', '_')}_command")
        command.short_help = short_help
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class Commands(click.Group):
    """Import a command when it is used. Turn errors into a message and an exit code."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.commands = LazyCommands()  # type: ignore[assignment]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, short_help) for name, (_, short_help) in group.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        commands_found = [
            (name, short_help) for name, (_, short_help) in COMMANDS.items() if name.startswith(incomplete)
        ]
        commands = [CompletionItem(name, help=short_help) for name, short_help in commands_found]
        return commands + click.Command.shell_complete(self, ctx, incomplete)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            note_json(ctx, command, rest)
        return name, command, rest

    def invoke(self, ctx: click.Context) -> Any:
        LOG.published = False
        begin_answer()
        try:
            with ended_by_signals():
                return super().invoke(ctx)
        except (click.exceptions.Exit, click.Abort):
            raise
        except click.ClickException as error:
            answer_failure(error.format_message(), error.exit_code)
            raise
        except (PackError, ReadError) as error:
            message = f"{error}{_published_before(ctx, error)}"
            answer_failure(message, exit_code(error), error)
            LOG.fail("error", message, exit_code(error))
            if str(error).count("\n") > MOST_LINES and LOG.form == TEXT:
                show(f"packer: {str(error).splitlines()[0]} (listed above)", err=True)
            ctx.exit(exit_code(error))
        except KeyboardInterrupt as stop:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # everything has stopped, so another Ctrl-C changes nothing
            number = stop.number if isinstance(stop, StoppedError) else signal.SIGINT
            message = f"{STOPPED[number]}{_left_behind(ctx)}"
            answer_failure(message, exit_code(stop))
            LOG.fail("stopped", message, exit_code(stop))
            ctx.exit(exit_code(stop))
        except MemoryError as error:
            advice = "try fewer --workers or a smaller --shard-size"
            _failed(f"out of memory ({error}); {advice}{_published_before(ctx, error)}")
            ctx.exit(1)
        except BrokenPipeError:  # click handles a closed stdout
            raise
        except OSError as error:  # an error without a message of ours: a name too long, a folder without permission
            message = f"{error.filename or 'input/output'}: {error.strerror or error}{_published_before(ctx, error)}"
            _failed(message)
            ctx.exit(1)
        except Exception as error:  # a mistake of ours: the traceback follows
            answer_failure(f"{type(error).__name__}: {error}{_published_before(ctx, error)}", 1)
            if LOG.published:
                show(f"packer: {type(error).__name__}{_published_before(ctx, error)}", err=True)
            raise


def _failed(message: str) -> None:
    answer_failure(message, 1)
    show(f"packer: {message}", err=True)


def _left_behind(ctx: click.Context) -> str:
    """Return a remark on whether the interrupted command published a generation."""
    if ctx.invoked_subcommand not in PUBLISHING:
        return ""
    return "; everything was published before" if LOG.published else "; nothing was published"


def _published_before(ctx: click.Context, error: Exception) -> str:
    """Return a remark if the command failed after it had published, unless the error says so itself."""
    is_clear = not LOG.published or "was published" in str(error)
    return "" if is_clear or ctx.invoked_subcommand not in PUBLISHING else "; everything was published before"


@version_option
@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
def main() -> None:
    """Decode segmentation data sets once, offline, into files that training memory-maps.

    \b
    Example:
      packer probe raw/
      packer build --format lmdb raw/ out/
      packer info out/
      packer verify out/

    \b
    Exit codes:
      0 done   1 failed   2 wrong usage   3 more bad pairs than --max-bad   4 damaged data
      5 OUT is pinned   6 findings of --fail-on
      75 another process is changing OUT
      130 interrupted   143 terminated   129 hung up
    """
