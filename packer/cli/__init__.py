"""The command line: parse, call, print, exit. Data goes to stdout, words go to stderr."""

from __future__ import annotations

import signal
from typing import Any

import click

from packer.cli.bench import bench_command
from packer.cli.build import build_command
from packer.cli.completion import completion_command
from packer.cli.diagnose import diagnose_command
from packer.cli.diff import diff_command
from packer.cli.exit_code import exit_code
from packer.cli.generations import gc_command, log_command, rollback_command, unpin_command
from packer.cli.help import help_command
from packer.cli.info import info_command
from packer.cli.log import LOG, TEXT
from packer.cli.output import show
from packer.cli.presets import presets_command
from packer.cli.probe import probe_command
from packer.cli.repair import repair_command
from packer.cli.stage import stage_command
from packer.cli.stats import stats_command
from packer.cli.verify import verify_command
from packer.cli.version import version_option
from packer.errors import PackError
from packer.signals import StoppedError, ended_by_signals
from readers.contract.errors import ReadError

PUBLISHING = ("build", "repair", "rollback", "stage")
STOPPED = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated", signal.SIGHUP: "hung up"}
MOST_LINES = 20
"""A longer error repeats its first line at the end, because the top has scrolled away."""


class Commands(click.Group):
    """Turn errors into a message and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        LOG.published = False
        try:
            with ended_by_signals():
                return super().invoke(ctx)
        except (PackError, ReadError) as error:
            LOG.say("error", f"packer: {error}{_published_before(ctx, error)}", exit_code=exit_code(error))
            if str(error).count("\n") > MOST_LINES and LOG.form == TEXT:
                show(f"packer: {str(error).splitlines()[0]} (listed above)", err=True)
            ctx.exit(exit_code(error))
        except KeyboardInterrupt as stop:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # everything has stopped, so another Ctrl-C changes nothing
            number = stop.number if isinstance(stop, StoppedError) else signal.SIGINT
            LOG.say("stopped", f"packer: {STOPPED[number]}{_left_behind(ctx)}", exit_code=exit_code(stop))
            ctx.exit(exit_code(stop))
        except MemoryError as error:
            advice = "try fewer --workers or a smaller --shard-size"
            show(f"packer: out of memory ({error}); {advice}{_published_before(ctx, error)}", err=True)
            ctx.exit(1)
        except BrokenPipeError:  # click handles a closed stdout
            raise
        except OSError as error:  # an error without a message of ours: a name too long, a folder without permission
            message = f"{error.filename or 'input/output'}: {error.strerror or error}{_published_before(ctx, error)}"
            show(f"packer: {message}", err=True)
            ctx.exit(1)
        except Exception as error:  # a mistake of ours: the traceback follows
            if LOG.published:
                show(f"packer: {type(error).__name__}{_published_before(ctx, error)}", err=True)
            raise


def _left_behind(ctx: click.Context) -> str:
    """Return a remark on whether the interrupted command published a generation."""
    if ctx.invoked_subcommand not in PUBLISHING:
        return ""
    return "; everything was published before" if LOG.published else "; nothing was published"


def _published_before(ctx: click.Context, error: Exception) -> str:
    """Return a remark if the command failed after it had published, unless the error says so itself."""
    known = not LOG.published or "was published" in str(error)
    return "" if known or ctx.invoked_subcommand not in PUBLISHING else "; everything was published before"


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


for command in (
    bench_command,
    build_command,
    completion_command,
    diagnose_command,
    diff_command,
    gc_command,
    help_command,
    info_command,
    log_command,
    presets_command,
    probe_command,
    repair_command,
    rollback_command,
    stage_command,
    stats_command,
    unpin_command,
    verify_command,
):
    main.add_command(command)
