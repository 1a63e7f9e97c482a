"""Repairing a pack: its damaged shards are built again from the raw files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path

from packer.building import Summary, build, built_here, lock_if_there
from packer.config.config import Settings, read_config
from packer.config.effective import from_python
from packer.config.last_build import last_settings
from packer.config.options import CONFIGURATION
from packer.errors import InputError, PackError, PinnedError, counted
from packer.packs.verify import Damage, verify
from packer.plan.make_plan import make_plan
from packer.plan.request import Input, Request, raw_or_source
from packer.progress import Progress, no_progress
from packer.publish.generation import restore_manifest
from packer.publish.target import is_ours, sync_shards, tidy
from packer.shards.stamps import may_be_one_of
from packer.workers.add_cells import add_cells
from packer.workers.run import build_shards
from readers.contract.errors import DamagedError, NoPackError
from readers.contract.manifest import CELLS, MANIFEST, Manifest
from readers.machine import usable_cores
from readers.pack import Pack


@dataclass(frozen=True)
class Repair:
    """The damage that was found, and the build that repaired it; None if nothing had to be built, or if it is refused.

    If `refused` is set, the damaged shards were built again, and the current generation stays.
    """

    damage: tuple[Damage, ...]
    summary: Summary | None
    refused: PackError | None = None
    """The reason if no generation can be built from the raw files of today."""
    counted: int = 0
    """The shards whose classes were counted again."""


def repair_pack(
    out: str | PathLike[str],
    raw: Input | None = None,
    *,
    config: str | PathLike[str] | None = None,
    workers: int | None = None,
    progress: Progress = no_progress,
    found: Callable[[Sequence[Damage]], object] = lambda damage: None,
    on_bad: str | None = None,
    max_bad: int | float | str | None = None,
) -> Repair:
    """Check every byte of a pack and build its damaged shards again from `raw`. Whole shards are not touched.

    Without `raw`, the folder of the last build is used; a source must be given. The options come from the last build,
    or from `config`; `on_bad` and `max_bad` win over both. If a build is refused, for example because pairs of other
    shards are bad, the damaged shards alone are built again. `found` hears of the damage before anything is built.
    Raises DamagedError if some damage cannot be repaired.
    """
    out = Path(out)
    if config is not None:
        read_config(Path(config), more=CONFIGURATION)  # a mistake in it is known before the bytes are checked
    with lock_if_there(out):
        restored = _restore_manifest(out)
        damage = [*restored, *_verify(out, workers, progress)]
        if is_ours(out):
            tidy(out)
        if damage:
            found(damage)
        cells = frozenset(item.shard for item in damage if item.file is not None and item.file.parent == out / CELLS)
        if all(item in restored or item.shard in cells for item in damage):
            return Repair(tuple(damage), None, counted=_count_again(out, cells))
        folder, source = (None, None) if raw is None else raw_or_source(raw)
        settings = {
            **last_settings(out, folder, None if config is None else Path(config), source is None),
            **from_python({"on_bad": on_bad, "max_bad": max_bad}),
        }
        stems = frozenset(item.shard for item in damage if item.shard is not None)
        request = Request.from_settings(settings, source)
        summary: Summary | None = None
        refused: PackError | None = None
        try:
            summary = _build_all(request, stems, progress)
        except (InputError, PinnedError) as error:
            refused = error
            _build_alone(Request.from_settings(_lenient(settings), source), stems, error)
        left = _verify(out, workers, progress)
    if left:
        raise refused or DamagedError("\n".join([f"{out}: {counted(len(left), 'problem')} left", *map(str, left)]))
    return Repair(tuple(damage), summary, refused)


def _count_again(out: Path, stems: Collection[str | None]) -> int:
    """Write the cells of these shards, which are whole, and return how many these are."""
    if stems:
        pack = Pack.open(out)
        shards = [number for number in range(len(pack.table)) if pack.stem(number).name in stems]
        add_cells(pack, shards, lambda rows: None, usable_cores())
    return len(stems)


def _build_all(request: Request, stems: frozenset[str], progress: Progress) -> Summary:
    """Build a generation in which the shards with these stems are new."""
    with request.running.open_pool() as pool:
        plan = make_plan(request, stems, pool)
        with progress("packing", plan.pieces, "rows") as advance:
            return build(plan, advance, pool, partial(built_here, pool=pool, rewrite=True))


def _lenient(settings: Settings) -> Settings:
    """Return the settings with which bad pairs and files without a partner stop no plan."""
    missing = "skip" if settings["missing"] == "error" else settings["missing"]
    return {**{name: settings[name] for name in settings if name != "max-bad"}, "on-bad": "skip", "missing": missing}


def _build_alone(request: Request, stems: frozenset[str], refusal: PackError) -> None:
    """Build the shards with these stems again, whatever the rows of other shards are. No generation is published."""
    with request.running.open_pool() as pool:
        try:
            plan = make_plan(request, stems, pool)
        except PackError as error:
            raise refusal from error
        specs = [spec for spec in plan.new_specs.values() if may_be_one_of(spec, stems, request.store.out)]
        with closing(build_shards(specs, plan.found_rows.source, request.store.out, pool, rewrite=True)) as shards:
            for _ in shards:
                pass  # each is written when it is there
        sync_shards(request.store.out)


def _restore_manifest(out: Path) -> list[Damage]:
    """Put the kept copy in the place of a damaged manifest. Return its damage; nothing if it is whole or has no copy.

    A restored manifest is proven by what is on disk, so nothing needs to be built for it.
    """
    if not is_ours(out):
        return []
    try:
        Manifest.load(out)
    except (NoPackError, DamagedError) as error:
        return [Damage(str(error), file=out / MANIFEST)] if restore_manifest(out) else []
    return []


def _verify(out: Path, workers: int | None, progress: Progress) -> list[Damage]:
    try:
        total = Manifest.load(out).bytes
    except DamagedError as error:
        return [Damage(str(error))]
    with progress("verifying", total, "B") as advance:
        return verify(out, workers or usable_cores(), advance)
