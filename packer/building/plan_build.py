"""Plan a build as files, which any machine can build."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from packer.building.read_part import read_part
from packer.building.run_build import lock_if_there
from packer.plan.make_plan import make_plan
from packer.plan.plan import Plan
from packer.plan.request import Input, Request, request_of
from packer.plan.write_plan import check_folder, write_plan
from packer.progress import Progress, no_progress
from packer.publish.atomic import store_errors
from packer.publish.bucket import with_stamps
from packer.publish.local_mirror import open_shadow
from packer.publish.target import check_target
from readers.stores.open_store import open_store, url_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from packer.config.build_options import BuildOptions


def plan_pack(
    raw: Input,
    plan: str | PathLike[str],
    *,
    reuse: str | PathLike[str] | None = None,
    progress: Progress = no_progress,
    **options: Unpack[BuildOptions],
) -> str:
    """Plan a build of `raw` and write the plan into the new folder `plan`, as `packer plan` does.

    Return the SHA-256 of the plan. `raw` may be a source, whose functions are at the top level of a module that other
    machines can import. Shards of the pack `reuse` that did not change are not built again.
    """
    _, sha256 = plan_from(request_of(raw, plan, **options), reuse, progress)
    return str(sha256)


def plan_part(
    raw: Input,
    plan: str | PathLike[str],
    part: str,
    *,
    progress: Progress = no_progress,
    **options: Unpack[BuildOptions],
) -> int:
    """Read the headers of a part such as "3/16" into the folder `plan`, as `packer plan --part` does.

    Return how many rows were read now. `plan_pack` with the same options then has what all parts have read.
    """
    return read_part(request_of(raw, plan, **options), part, progress=progress)


def plan_from(
    request: Request, reuse: str | PathLike[str] | None = None, progress: Progress = no_progress
) -> tuple[Plan, str | None]:
    """Plan what a request asks for, whose OUT is the folder of the plan. With --dry-run nothing is written."""
    folder = request.store.out
    check_folder(folder)
    with reusable(reuse, request) as with_pack, lock_if_there(with_pack.store.out):
        plan = make_plan(with_pack, parts=folder)
    if request.settings.get("dry-run"):
        return plan, None
    with progress("writing the plan", len(plan.specs), "shards") as advance:
        return plan, write_plan(plan, folder, advance).sha256


@contextmanager
def reusable(reuse: str | PathLike[str] | None, request: Request) -> Iterator[Request]:
    """Yield the request with the pack whose unchanged shards are not built again; of a URL, with its shadow."""
    if reuse is None:
        yield request
    elif (url := url_of(reuse)) is None:
        check_target(Path(reuse), request.rows.raw)
        yield request.into(Path(reuse))
    else:
        with store_errors(), open_shadow(open_store(url), request.store.scratch, with_stamps) as shadow:
            yield request.into(shadow)
