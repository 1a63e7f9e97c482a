"""Splits of exact sizes, with every class in its share; and the warning about drawn splits that are too small."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from conftest import good, run, write_png
from hypothesis import given
from hypothesis import strategies as st

from packer.errors import UsageError
from packer.pairs.pairing_rules import PairingRules
from packer.pairs.split_by_hash import Shares
from packer.pairs.split_exact import draw_exact, exact_sizes

pytestmark = pytest.mark.usefixtures("in_process")

TENTHS = Shares.parse("80/10/10")


def raw_pairs(raw: Path, count: int, rare: int) -> Path:
    """Write pairs in which class 0 is everywhere, and class 1 in the first few."""
    for number in range(count):
        image = np.random.default_rng(number).integers(0, 256, (4, 5, 3), dtype=np.uint8)
        label = np.zeros((4, 5), np.uint8)
        label[0, : 1 + number % 5] = number < rare
        write_png(raw / "images" / f"{number:03}.png", image)
        write_png(raw / "labels" / f"{number:03}.png", label)
    return raw


def test_30_pairs_are_24_3_3_and_every_split_has_the_rare_class(tmp_path: Path) -> None:
    raw, out = raw_pairs(tmp_path / "raw", 30, rare=10), tmp_path / "out"
    options = ("--quiet", "--classes", 2, "--split", "80/10/10", "--split-exact")
    done = good("build", *options, raw, out)
    assert "30 rows (test 3, train 24, val 3)" in done.stdout
    assert "a split lacks" not in done.stderr
    again = run("build", *options, raw, out)
    assert "generation 1, 30 rows" in again.stdout
    assert "30 reused" in again.stdout
    assert "up to date" in run("diff", out, raw).stdout


@given(
    st.sampled_from(["80/10/10", "50/50", "a=33.3,b=33.3,c=33.4", "a=99,b=1"]),
    st.lists(st.dictionaries(st.integers(0, 5), st.integers(0, 100), max_size=4), min_size=1, max_size=60),
)
def test_sizes_are_exact_and_the_order_of_pairs_does_not_matter(
    text: str,
    pixels: list[dict[int, int]],
) -> None:
    shares, groups = Shares.parse(text), [str(number) for number in range(len(pixels))]
    drawn = draw_exact(shares, groups, pixels)
    counts = Counter(drawn.values())
    assert {name: counts[name] for name, _ in shares.parts} == exact_sizes(shares, len(groups))
    assert all(abs(counts[name] - share * len(groups)) < 1 for name, share in shares.parts)
    order = sorted(range(len(groups)), key=lambda index: (index * 7919) % len(groups))
    assert draw_exact(shares, [groups[index] for index in order], [pixels[index] for index in order]) == drawn


def test_classes_get_their_shares() -> None:
    groups = [str(number) for number in range(200)]
    pixels = [{0: 50, 1: 10 * (number < 20), 2: 5 * (number % 2)} for number in range(200)]
    drawn = draw_exact(TENTHS, groups, pixels)
    assert Counter(drawn.values()) == {"train": 160, "val": 20, "test": 20}
    assert Counter(drawn[group] for group in groups[:20]) == {"train": 16, "val": 2, "test": 2}
    assert Counter(drawn[group] for group in groups[1::2]) == {"train": 80, "val": 10, "test": 10}


def test_a_group_is_not_cut() -> None:
    groups = [f"patient {number // 3}" for number in range(60)]
    drawn = draw_exact(Shares.parse("50/50"), groups, [{0: 1}] * 60)
    assert Counter(drawn[group] for group in groups) == {"train": 30, "val": 30}
    assert len(drawn) == 20
    everything = draw_exact(TENTHS, ["one"] * 7, [{}] * 7)
    assert set(everything) == {"one"}


def test_a_drawn_split_that_is_too_small_is_reported(tmp_path: Path) -> None:
    raw = raw_pairs(tmp_path / "raw", 30, rare=0)
    planned = run("build", "--dry-run", "--classes", 1, "--split", "80/10/10", raw, tmp_path / "out").stdout
    counts = {
        part.split()[0]: int(part.split()[1]) for part in planned.split("pairs     ")[1].splitlines()[0].split(", ")
    }
    for name in ("val", "test"):
        warning = f"note      the split {name} gets {counts.get(name, 0)} of 30 pairs, for a share of 10 %"
        assert (warning in planned) == (counts.get(name, 0) < 5)
    assert "; --split-exact draws splits of exact sizes" in planned
    assert "the split train" not in planned
    exact = run("build", "--dry-run", "--classes", 1, "--split", "80/10/10", "--split-exact", raw, tmp_path / "out")
    assert "note      the split val gets 3 of 30 pairs, for a share of 10 %\n" in exact.stdout
    assert (
        "the split" not in run("build", "--dry-run", "--classes", 1, "--split", "50/50", raw, tmp_path / "out").stdout
    )


def test_exact_sizes_need_shares() -> None:
    with pytest.raises(UsageError, match="--split-exact: needs --split"):
        PairingRules(split_exact=True)
