"""Read the headers of a part of the rows for a plan, on any machine."""

from __future__ import annotations

from os import PathLike

import numpy as np

from packer.building.plan_parts import PlanPart
from packer.config.options import DIGEST
from packer.errors import UsageError
from packer.plan.check_heads import judged_by, read_sizes
from packer.plan.header_blocks import HeaderBlocks
from packer.plan.make_plan import opened, search
from packer.plan.plan_fields import plan_fields
from packer.plan.problems import Problems
from packer.plan.request import Request
from packer.plan.write_plan import check_folder
from packer.progress import Progress, no_progress
from packer.runtime import no_collecting
from packer.workers.pool import Pool


def read_part(
    request: Request, part: str, reuse: str | PathLike[str] | None = None, progress: Progress = no_progress
) -> int:
    """Read the headers of a part such as "3/16" into the folder of the plan. Return how many rows were read now."""
    try:
        chosen = PlanPart.from_text(part)
    except ValueError as error:
        raise UsageError(f"--part: {error}") from error
    if reuse is not None or request.settings.get("dry-run") or request.judgement.trust == DIGEST:
        raise UsageError("--part: only reads headers; give --reuse, --dry-run and --trust digest without it")
    check_folder(request.store.out)
    with no_collecting(), opened(request) as pool:
        return _read(request, chosen, pool, progress)


def _read(request: Request, part: PlanPart, pool: Pool, progress: Progress) -> int:
    """Read as many blocks together as there are workers."""
    found_rows, side = search(request, pool), request.shape.resolution
    fields = plan_fields(found_rows, request.fields)
    Problems(*found_rows.problems, *fields.problems).check(None)
    source, refs = found_rows.source, found_rows.refs
    kept = HeaderBlocks(request.store.out, found_rows, judged_by(found_rows, fields.fields, side))
    blocks = kept.of_part(part.number, part.count)
    sizes = np.zeros((len(refs), 3 if source.gives_volumes else 2), np.uint32)
    total = sum(len(block.numbers) for block in blocks)
    with progress(f"reading headers {part}", total, "rows") as advance:
        for first in range(0, len(blocks), pool.workers):
            some = blocks[first : first + pool.workers]
            states = [source.states(refs.take(block.numbers)) for block in some]  # before their headers
            numbers = np.concatenate([block.numbers for block in some])
            read_sizes(found_rows, fields.fields, side, numbers, sizes, pool)
            for block, states_of in zip(some, states, strict=True):
                kept.write(block, states_of, sizes[block.start : block.stop])
            advance(len(numbers))
    return total
