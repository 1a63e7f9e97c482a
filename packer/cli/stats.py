"""`packer stats`: mean, deviation, classes and their weights, by split."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from packer.cli.loading import loading
from packer.cli.output import join_lines, show
from packer.cli.text_table import text_table
from packer.errors import first_of
from readers.statistics import WEIGHTINGS

if TYPE_CHECKING:
    from packer.packs.stats import SplitStats

MOST_SIZES = 5


@click.command("stats")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
def stats_command(out: Path, as_json: bool) -> None:
    """Show the exact statistics of each split of OUT. They were counted during the build, so no image is read.

    Mean and deviation are of numbers from 0 to 1. The weights are for a loss in which rare classes count as well. In
    training they are train.mean, train.std and train.class_weights("median").

    \b
    Example:
      packer stats out/
      packer stats --json out/ | jq '.[0].mean'
    """
    with loading():
        from packer.packs.stats import pack_stats
    stats = pack_stats(out)
    if as_json:
        show(json.dumps(list(map(_json, stats)), indent=1, ensure_ascii=False))
    else:
        show("\n\n".join(map(_text, stats)))


def _json(stats: SplitStats) -> dict[str, Any]:
    sizes = {f"{height}x{width}": count for (height, width), count in stats.sizes.items()}
    return asdict(stats) | {"sizes": sizes}


def _text(stats: SplitStats) -> str:
    sizes = [f"{count} of {height}x{width}" for (height, width), count in stats.sizes.items()]
    ignored = 100 * stats.ignored / max(1, stats.pixels)
    rows = [
        [str(index), item.name, f"{100 * item.share:.3f} %", str(item.rows)]
        + [f"{item.weights[weighting]:.4g}" for weighting in WEIGHTINGS]
        for index, item in enumerate(stats.classes)
    ]
    return join_lines(
        [
            f"{stats.split}: {stats.rows} rows ({', '.join(first_of(sizes, MOST_SIZES, 'sizes'))}), "
            f"{ignored:.3f} % ignored",
            "mean  " + "  ".join(f"{value:.6f}" for value in stats.mean),
            "std   " + "  ".join(f"{value:.6f}" for value in stats.std),
            *text_table([["", "class", "pixels", "rows", *WEIGHTINGS], *rows], left=(0, 1)),
        ]
    )
