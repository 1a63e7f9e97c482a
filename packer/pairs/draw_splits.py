"""Draw the splits of pairs that have none: by a hash of each key, or exactly, with every class in its share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from packer.errors import InputError, UsageError
from packer.pairs.candidates import Candidate, Candidates
from packer.pairs.layouts import Layout
from packer.pairs.split_by_hash import Shares
from packer.pairs.split_exact import CountPixels, draw_exact
from packer.pairs.template import composed
from readers.contract.manifest import ALL

FEW_PAIRS, FEW_PERCENT = 5, 1
"""A drawn split with fewer pairs, or with a smaller part of all pairs, is reported."""


def draw_splits(
    found: Candidates, shares: Shares, split_by: str | None, layout: Layout | None, count_pixels: CountPixels | None
) -> None:
    """Give each pair a split, the same to all with one capture `split_by`; of exact sizes if pixels are counted."""
    groups = [_group(pair, split_by, layout) for pair in found.pairs]
    exact = draw_exact(shares, groups, count_pixels([pair.label for pair in found.pairs])) if count_pixels else {}
    drawn = [exact.get(group) or shares.split_of(group) for group in groups]
    found.pairs = [pair._replace(split=split) for pair, split in zip(found.pairs, drawn, strict=True)]
    advice = "" if count_pixels else "; --split-exact draws splits of exact sizes"
    found.notes += [f"{words}{advice}" for words in _small_splits(shares, Counter(drawn))]


def _group(pair: Candidate, split_by: str | None, layout: Layout | None) -> str:
    """Return what decides the split of a pair: its key, or the capture or column `split_by`."""
    if pair.split not in ("", ALL):
        raise InputError(
            f"--split: there are splits already, such as {pair.split!r} of {pair.image}; leave --split out, "
            "or give --image and --label without {split} to ignore these splits and any split lists"
        )
    group = pair.key
    if split_by:
        captures = dict(pair.captures) or (layout.captures(pair.image, pair.label) if layout else {})
        if split_by not in captures:
            known = ", ".join(captures) or "none"
            raise UsageError(f"--split-by {split_by}: no capture or column has this name; there are only {known}")
        group = captures[split_by]
    return composed(group)


def _small_splits(shares: Shares, counts: Mapping[str, int]) -> Iterator[str]:
    """Warn about drawn splits that are too small to measure anything on."""
    total = sum(counts.values())
    for name, share in shares.parts:
        if counts.get(name, 0) < max(FEW_PAIRS, FEW_PERCENT * total / 100):
            drawn = f"the split {name} gets {counts.get(name, 0)} of {total} pairs"
            yield f"{drawn}, for a share of {float(100 * share):g} %"
