"""`packer stats`: mean, deviation, classes and their weights, of each split."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import click

from packer.cli.text_table import text_table
from readers.contract.manifest import Manifest, Split
from readers.pack import Pack
from readers.statistics import WEIGHTINGS, class_weights, deviation, mean

MOST_SIZES = 5


@click.command("stats", short_help="Show mean, deviation, classes and their weights.")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
def stats_command(out: Path, as_json: bool) -> None:
    """Show the statistics of each split of OUT: exact, and counted when it was built, so nothing is read for them.

    Mean and deviation are of numbers from 0 to 1. Weights are for a loss, so that rare classes are learnt as well; in
    training they are train.mean, train.std and train.class_weights("median").

    \b
    Example:
      packer stats out/
      packer stats --json out/ | jq '.[0].mean'
    """
    pack = Pack.open(out)
    facts = [_facts(pack.manifest, split, _sizes(pack, rows)) for split, _, rows in pack.splits() if split.rows]
    if as_json:
        click.echo(json.dumps(facts, indent=1, ensure_ascii=False))
    else:
        click.echo("\n\n".join(map(_text, facts)))


def _sizes(pack: Pack, rows: range) -> Counter[tuple[int, int]]:
    """How many rows are of each size."""
    fixed = pack.manifest.fields[0].size
    if fixed is not None:
        return Counter({fixed: len(rows)})
    places = map(pack.table.locate, rows)
    return Counter(pack.shard(shard).size(place) for shard, place in places)


def _facts(manifest: Manifest, split: Split, sizes: Counter[tuple[int, int]]) -> dict[str, Any]:
    pixels, labelled = split.pixels, max(1, sum(split.pixels.classes))
    weights = {weighting: class_weights(pixels, weighting) for weighting in WEIGHTINGS}
    return {
        "split": split.name,
        "rows": split.rows,
        "pixels": pixels.count,
        "ignored": pixels.ignored,
        "mean": list(mean(pixels)),
        "std": list(deviation(pixels)),
        "sizes": {f"{height}x{width}": count for (height, width), count in sizes.most_common()},
        "classes": [
            {
                "name": name,
                "pixels": pixels.classes[index],
                "share": pixels.classes[index] / labelled,
                "rows": pixels.rows[index],
                "weights": {weighting: weights[weighting][index] for weighting in WEIGHTINGS},
            }
            for index, name in enumerate(manifest.classes.names)
        ],
    }


def _text(facts: dict[str, Any]) -> str:
    sizes = [f"{count} of {size}" for size, count in facts["sizes"].items()]
    more = f", and {len(sizes) - MOST_SIZES} more sizes" if len(sizes) > MOST_SIZES else ""
    ignored = 100 * facts["ignored"] / max(1, facts["pixels"])
    rows = [
        [str(index), one["name"], f"{100 * one['share']:.3f} %", str(one["rows"])]
        + [f"{one['weights'][weighting]:.4g}" for weighting in WEIGHTINGS]
        for index, one in enumerate(facts["classes"])
    ]
    return "\n".join(
        [
            f"{facts['split']}: {facts['rows']} rows ({', '.join(sizes[:MOST_SIZES])}{more}), {ignored:.3f} % ignored",
            "mean  " + "  ".join(f"{one:.6f}" for one in facts["mean"]),
            "std   " + "  ".join(f"{one:.6f}" for one in facts["std"]),
            *text_table([["", "class", "pixels", "rows", *WEIGHTINGS], *rows], left=(0, 1)),
        ]
    )
