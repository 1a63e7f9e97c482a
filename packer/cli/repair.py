"""`packer repair`: damaged shards are built again from the raw files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from packer.cli.build import log_summary
from packer.cli.configured import overriding_option
from packer.cli.loading import loading
from packer.cli.output import show
from packer.cli.progress import shown
from packer.cli.publishing import publishing
from packer.cli.values import FolderType
from packer.errors import counted
from packer.publish.target import raw_and_out
from readers.contract.manifest import MANIFEST
from readers.contract.plain_text import one_line

if TYPE_CHECKING:
    from packer.packs.verify import Damage


@click.command("repair")
@click.argument(
    "out", type=FolderType("packer verify {url} names damaged objects; delete them, and build or push again")
)
@click.argument("raw", type=click.Path(path_type=Path), required=False)
@click.option(
    "--config", type=click.Path(path_type=Path), help="Options of the build. Default: the options of the last build."
)
@overriding_option("on-bad")
@overriding_option("max-bad")
@click.option("--workers", type=click.IntRange(1), help="Number of cores to use. Default: all.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
def repair_command(
    out: Path,
    raw: Path | None,
    config: Path | None,
    on_bad: str | None,
    max_bad: float | None,
    workers: int | None,
    quiet: bool,
) -> None:
    """Check every byte of OUT, and build its damaged shards again from RAW. Whole shards are not touched.

    Without RAW, the folder or the pack that OUT was built from is used.

    A damaged manifest.json is restored from its copy in OUT/generations, if the copy is whole. Damaged files in
    OUT/cells are counted again.

    If RAW is unchanged, the same files are written and the generation stays. Otherwise the next generation is built
    from RAW. If that is refused, for example because too many pairs are bad, the damaged shards alone are
    built again, and the generation stays.

    \b
    Example:
      packer repair out/
      packer repair out/ raw/
    """
    with loading(workers=True):
        from packer.cli.build_text import summary_text
        from packer.packs.repair import repair_pack
    if raw is not None:
        raw, out = raw_and_out(raw, out)
    with publishing(out):
        repair = repair_pack(
            out,
            raw,
            config=config,
            workers=workers,
            progress=shown(quiet),
            found=_print_damage,
            on_bad=on_bad,
            max_bad=max_bad,
        )
    if repair.refused is not None:
        show(f"note      the next generation cannot be built: {repair.refused}", err=True)
        show(f"{out}: whole; its damaged shards were built again, and the generation stays")
        return
    if repair.summary is None:
        manifest = any(item.file == out / MANIFEST for item in repair.damage)
        done = [f"restored {MANIFEST} from its copy"] if manifest else []
        if repair.counted:
            done.append(f"counted the classes of {counted(repair.counted, 'shard')} again")
        show(f"{out}: whole; {', '.join(done) or 'nothing to repair'}")
        return
    log_summary(repair.summary)
    show(f"{summary_text(repair.summary, out)}; {out} is whole")


def _print_damage(damage: Sequence[Damage]) -> None:
    for item in damage:
        show(one_line(f"damaged   {item}"), err=True)
