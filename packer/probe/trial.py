"""Try a proposed configuration: plan a build with it, and decode a sample as a shard would."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from packer.config.config import Settings
from packer.config.effective import effective
from packer.errors import PackError, first_of
from packer.pairs.pair import Pair
from packer.plan.make_plan import make_plan
from packer.plan.request import Request
from packer.plan.sample import LabelSampler
from packer.sources.files.folder import refs_of

MOST_PROBLEMS = 3
"""A refusal names at most this many problems. It is one line."""


@dataclass(frozen=True)
class Trial:
    """The result of a trial: why a build refuses the configuration, or the pairs that it would reject."""

    refusal: str | None = None
    bad: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """The reasons of bad pairs, each with its file, by split and key."""
    all_fail: bool = False
    """True if no pair of the sample can be packed."""


def try_settings(
    raw: Settings, settings: Settings, sample: Sequence[Pair], sampler: LabelSampler, task_timeout: int
) -> Trial:
    """Make the plan of a build with these settings, so that it refuses what a build refuses; decode the sample.

    `raw` is the setting that names the folder.
    """
    with TemporaryDirectory() as folder:
        target = {"out": str(Path(folder) / "out"), "workers": "1", "task-timeout": str(task_timeout)}
        try:
            plan = make_plan(Request.from_settings({**effective({**settings, **raw}), **target}), pool=sampler.pool)
        except PackError as error:
            return Trial(refusal=_one_line(error))
    recipe = plan.recipe
    seen = LabelSampler(plan.found_rows.source, sampler.pool, recipe.max_pixels).inspect(
        list(refs_of(sample)), len(sample), recipe.classes, recipe.read_rules, images=True
    )
    bad = {sample[index][:2]: counts.bad for index, counts in seen.items() if counts.bad is not None}
    refused = {(ref.split, ref.key): reason for ref, reason in plan.bad_pairs}
    return Trial(None, {**bad, **refused}, len(bad) == len(seen) > 0)


def _one_line(error: PackError) -> str:
    summary, *problems = (line.strip() for line in str(error).splitlines())
    return f"{summary.rstrip(':')}: {'; '.join(first_of(problems, MOST_PROBLEMS))}" if problems else summary
