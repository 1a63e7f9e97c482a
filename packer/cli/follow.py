"""`packer build --follow`: build what is added to RAW, until a signal comes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from packer.cli.loading import loading
from packer.cli.log import LOG
from packer.errors import BusyError, PackError, UsageError, first_of

if TYPE_CHECKING:
    from packer.building import Summary
    from packer.building.run_build import Builder
    from packer.config.config import Settings

MOST_LINES = 4
"""The lines of an error that are logged."""


def follow_folder(settings: Settings, build: Callable[[Settings, Builder, bool], Summary]) -> None:
    """Build in rounds. `build` publishes one, and hears whether it is the first."""
    with loading(workers=True):
        from packer.building.follow import PASSING, Follow, NotYetError, follow_settings
        from packer.building.run_build import build_from
        from packer.config.options import OPTIONS, value_of
        from packer.plan.request import Request
    settings, is_first = follow_settings(settings), True
    minutes = value_of(OPTIONS["publish-every"], settings["publish-every"])
    follow = Follow(Path(str(settings["raw"])), Path(str(settings["out"])), 60.0 * minutes)
    while True:
        publishes, LOG.published = follow.wait(), False
        try:
            if publishes:
                follow.published(build(settings, follow.early.build, is_first))
                is_first = False
            else:
                build_from(Request.from_settings(settings), builder=follow.early.build_only)
        except NotYetError as early:
            LOG.say("built", f"built     {early}")
        except UsageError:
            raise
        except PASSING as error:
            _log(error)
        except BusyError as error:
            _log(error)
            follow.try_again()


def _log(error: PackError) -> None:
    """Log why a round ended."""
    words = " ".join(first_of([line.strip() for line in str(error).splitlines()], MOST_LINES, "lines"))
    LOG.say("waiting", f"waiting   {words}", reason=str(error))
