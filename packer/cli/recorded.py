"""What the last build of a pack was asked for, from the configuration that it kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from packer.build import Limits
from packer.cli.build import build_command, requested
from packer.config.last_build import kept_config
from packer.plan.request import Request

ONLY_OF_THE_COMMAND = ("as_json", "dry_run", "quiet", "log_format", "metrics_file", "config", "preset", "print_config")


def recorded_request(out: Path, raw: Path, config: Path | None) -> tuple[Request, Limits]:
    """The request of a build of RAW into OUT with the options in `config`, or else those of the last build."""
    path = config or kept_config(out)
    with build_command.make_context("build", ["--config", str(path), str(raw), str(out)]) as ctx:
        options = {name: value for name, value in ctx.params.items() if name not in ONLY_OF_THE_COMMAND}
    request, limits = requested(options)
    return replace(request, raw=raw, out=out), limits
