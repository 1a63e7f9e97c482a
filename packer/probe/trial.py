"""Try a proposed configuration: plan a build with it, and decode a sample as a shard would."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from packer.config.config import Settings
from packer.config.effective import effective
from packer.errors import PackError, first_of
from packer.pairs.pair import Pair
from packer.plan.make_plan import make_plan
from packer.plan.request import Request
from packer.plan.sample import LabelSampler
from packer.sources.folder import refs_of

MOST_PROBLEMS = 3
"""A refusal names at most this many problems. It is one line."""


@dataclass(frozen=True)
class Trial:
    """The result of a trial: why a build refuses the configuration, or the pairs that it would reject."""

    refusal: str | None = None
    bad: tuple[str, ...] = ()
    """The reasons of bad pairs, each with its file."""
    all_fail: bool = False
    """True if no pair of the sample can be packed."""


def try_settings(
    raw: str, settings: Settings, sample: Sequence[Pair], sampler: LabelSampler, task_timeout: int
) -> Trial:
    """Make the plan of a build with these settings, so that its refusals are those of a build; decode the sample."""
    with TemporaryDirectory() as folder:
        target = {"raw": raw, "out": str(Path(folder) / "out"), "workers": "1", "task-timeout": str(task_timeout)}
        try:
            plan = make_plan(Request.from_settings({**effective(settings), **target}), pool=sampler.pool)
        except PackError as error:
            return Trial(refusal=_one_line(error))
    recipe = plan.recipe
    seen = LabelSampler(plan.found.source, sampler.pool, recipe.max_pixels).inspect(
        list(refs_of(sample)), len(sample), recipe.classes, recipe.read_rules, images=True
    )
    bad = [counts.bad for counts in seen.values() if counts.bad is not None]
    return Trial(None, tuple(dict.fromkeys([*plan.rejects, *bad])), len(bad) == len(seen) > 0)


def _one_line(error: PackError) -> str:
    summary, *problems = (line.strip() for line in str(error).splitlines())
    return f"{summary.rstrip(':')}: {'; '.join(first_of(problems, MOST_PROBLEMS))}" if problems else summary
