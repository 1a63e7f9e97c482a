"""A plan below OUT, while workers on other machines read it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from packer.plan.plan import Plan
from packer.plan.write_plan import write_plan
from packer.publish.atomic import target_errors
from packer.publish.target import PLANS
from packer.recipe.plan_folder import PlanFolder
from readers.contract.atomic import make_folder, partial, sync_folder

NAME_DIGITS = 16
"""The name of a plan below OUT is the beginning of its SHA-256."""


@contextmanager
def shared_plan(plan: Plan) -> Iterator[PlanFolder]:
    """Write a plan below OUT, and remove it at the end.

    Workers of a build that was killed may read the same plan, so one that is there is replaced by an equal one.
    """
    plans = plan.out.absolute() / PLANS
    with target_errors(plans):
        make_folder(plans)
        with partial(plans) as new:
            written = write_plan(plan, new, has_tickets=False)
            path = plans / written.sha256[:NAME_DIGITS]
            if path.exists():
                path.replace(new.with_name("old"))
            new.replace(path)
        sync_folder(plans)
    try:
        yield PlanFolder.open(path, written.sha256)
    finally:
        shutil.rmtree(path, ignore_errors=True)
        with suppress(OSError):  # there are others
            plans.rmdir()
