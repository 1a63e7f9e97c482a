"""`packer gc`: delete what no kept generation uses; list and end unfinished uploads."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from packer.cli.loading import loading
from packer.cli.output import join_lines, show
from packer.cli.values import PackType, TimeType, bytes_text
from packer.errors import UsageError, counted
from packer.publish.history import DEFAULT_KEEP

if TYPE_CHECKING:
    from packer.packs.uploads import Upload


@click.command("gc")
@click.argument("out", type=PackType())
@click.option(
    "--keep", type=click.IntRange(1), default=DEFAULT_KEEP, show_default=True, help="Number of generations to keep."
)
@click.option(
    "--grace",
    type=TimeType(),
    default="24h",
    show_default=True,
    help="Also keep generations that were current, and files that were made, within this time: 90s, 30m, 24h, 7d.",
)
@click.option("--uploads", is_flag=True, help="List unfinished uploads below OUT, a URL of S3, and delete nothing.")
@click.option("--end", is_flag=True, help="With --uploads: end those that are older than --grace.")
@click.option("--dry-run", is_flag=True, help="Show what would be deleted; delete nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the deleted files as JSON.")
def gc_command(
    out: Path | str, keep: int, grace: float, uploads: bool, end: bool, dry_run: bool, as_json: bool
) -> None:
    """Delete the generations of OUT that are older than the last --keep, and the shards that only they use.

    A training run that has an old generation open keeps the shards that it has read from, but may fail to open more.
    So choose a --grace that is longer than an epoch. Tickets of a plan, and a plan that a killed build on a cluster
    left in OUT, are deleted when they are older.

    Staged copies on this machine of generations that are gone are named.

    A bucket has no lock: let no build into it run at the same time.

    --uploads lists parts of uploads that were cut, which no listing shows and which are billed. --end deletes them.
    Generations and shards stay.

    \b
    Example:
      packer gc --keep 7 --dry-run out/
      packer gc --keep 7 out/
      packer gc --keep 7 s3://bucket/out
      packer gc --uploads --end --grace 7d s3://bucket/out
    """
    if end and not uploads:
        raise UsageError("--end: belongs to --uploads")
    if uploads:
        _print_uploads(out, grace, end and not dry_run, as_json)
        return
    with loading():
        from packer.packs.garbage import delete_garbage
        from packer.packs.staged_copies import outdated_copies
    garbage = delete_garbage(out, keep, grace, dry_run=dry_run)
    copies = outdated_copies(out)
    facts: dict[str, Any] = {
        "kept": list(garbage.kept),
        "generations": len(garbage.manifests),
        "files": [str(path.relative_to(out) if isinstance(out, Path) else path) for path in garbage.paths],
        "bytes": garbage.bytes,
        "outdated_copies": [str(copy.path) for copy in copies],
    }
    deleted = "would be deleted" if dry_run else "deleted"
    kept = ", ".join(map(str, garbage.kept))
    show(
        json.dumps(facts, indent=1)
        if as_json
        else f"{out}: {counted(len(garbage.manifests), 'generation')} and {counted(len(garbage.paths), 'file')}, "
        f"{bytes_text(garbage.bytes)}, {deleted}; kept {kept}"
    )
    for copy in () if as_json else copies:
        show(
            f"{copy.path}: is a staged copy, {bytes_text(copy.bytes)}, of a generation that {out} no longer has; "
            f"packer stage {out} {copy.path.parent.parent} updates it, packer stage --drop {copy.path} removes it"
        )


def _print_uploads(out: Path | str, grace: float, end: bool, as_json: bool) -> None:
    with loading():
        from packer.packs.uploads import end_uploads
    old, young = end_uploads(str(out), grace, dry_run=not end)
    if as_json:
        show(json.dumps({"ended": end, "old": list(map(_facts, old)), "young": list(map(_facts, young))}, indent=1))
        return
    show(join_lines([*_lines(old, "ended" if end else "old"), *_lines(young, "young"), _summary(out, old, young, end)]))


def _lines(uploads: Sequence[Upload], word: str) -> Iterator[str]:
    for upload in uploads:
        hours = max(0.0, time.time() - upload.begun) / 3600
        yield f"{word:<6}{hours:8.1f} h {bytes_text(upload.bytes):>11}  {upload.name}"


def _summary(out: Path | str, old: Sequence[Upload], young: Sequence[Upload], end: bool) -> str:
    if not old and not young:
        return f"{out}: no unfinished uploads"
    size = bytes_text(sum(upload.bytes for upload in old))
    done = f"{len(old)} were ended" if end else f"{len(old)} are older than --grace: --end deletes them"
    return f"{out}: {len(old) + len(young)} unfinished uploads; {done}, {size}"


def _facts(upload: Upload) -> dict[str, Any]:
    return {"name": upload.name, "begun": upload.begun, "bytes": upload.bytes}
