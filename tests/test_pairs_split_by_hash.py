"""Drawn splits: the split of a pair depends on its key alone, groups stay together, and shares hold on average."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from conftest import good
from test_pairs_find import keys, touch

from packer.errors import InputError, UsageError
from packer.pairs.find import find_pairs
from packer.pairs.pairing_rules import PairingRules
from packer.pairs.split_by_hash import Shares
from packer.recipe.cut import key_hashes

pytestmark = pytest.mark.usefixtures("in_process")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("80/20", {"train": 80, "val": 20}),
        ("80/10/10", {"train": 80, "val": 10, "test": 10}),
        ("33.3/33.3/33.4", {"train": "33.3", "val": "33.3", "test": "33.4"}),
        ("test=5, fit=95", {"test": 5, "fit": 95}),
    ],
)
def test_shares_are_percents_with_the_usual_names_or_given_ones(text: str, parts: dict[str, str | int]) -> None:
    assert dict(Shares.parse(text).parts) == {name: Fraction(percent) / 100 for name, percent in parts.items()}


@pytest.mark.parametrize(
    "text",
    [
        *("", "100", "80", "50/40", "60/30/20", "25/25/25/25", "0/100", "x/y", "train=1/2,val=1/2"),
        *("a=50,a=50", "all=50,b=50", "a b=50,c=50", "a=150,b=-50", "a=nan,b=50", "=50,b=50", "1e99999999/1"),
    ],
)
def test_impossible_shares_are_wrong_usage(text: str) -> None:
    with pytest.raises(UsageError, match="--split"):
        Shares.parse(text)


def test_shares_hold_within_statistics() -> None:
    shares = Shares.parse("80/15/5")
    counts = Counter(shares.split_of(f"scene/{number}") for number in range(10_000))
    for name, share in shares.parts:
        expected = 10_000 * float(share)
        assert abs(counts[name] - expected) < 4 * (expected * (1 - float(share))) ** 0.5, counts


def test_the_draw_is_the_same_on_every_machine_and_in_every_version() -> None:
    shares = Shares.parse("50/50")
    assert "".join(shares.split_of(f"key {number}")[0] for number in range(16)) == "vvtvvttvvttttvtv"


def test_more_pairs_never_move_others(tmp_path: Path) -> None:
    rules = PairingRules(split=Shares.parse("60/20/20"))
    names = [f"{random.Random(number).randrange(10**9)}" for number in range(60)]
    before: dict[str, str] = {}
    for name in names:
        for folder in ("images", "labels"):
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / f"{name}.png").touch()
        after = {pair.key: pair.split for pair in find_pairs(tmp_path, rules).pairs}
        assert len(after) == len(before) + 1
        assert before.items() <= after.items()
        before = after
    assert len(set(before.values())) == 3


def test_a_group_stays_together_and_groups_are_drawn_apart(tmp_path: Path) -> None:
    names = [f"{patient}/{number}" for patient in range(40) for number in range(3)]
    touch(tmp_path, *(f"scan/{name}.png" for name in names), *(f"truth/{name}.png" for name in names))
    rules = {"image": "scan/{patient}/{key}.png", "label": "truth/{patient}/{key}.png"}
    found = keys(tmp_path, **rules, split=Shares.parse("50/50"), split_by="patient")
    splits = {patient: {split for split, key, *_ in found if key.startswith(f"{patient}/")} for patient in range(40)}
    assert all(len(drawn) == 1 for drawn in splits.values())
    assert len(set().union(*splits.values())) == 2
    apart = keys(tmp_path, **rules, split=Shares.parse("50/50"))
    assert any(len({split for split, key, *_ in apart if key.startswith(f"{n}/")}) == 2 for n in range(40))


def test_a_group_can_be_in_the_image_path_or_in_a_column_only(tmp_path: Path) -> None:
    touch(tmp_path, "ann/1.png", "bob/2.png", "gt/1.png", "gt/2.png")
    halves = Shares.parse("50/50")
    found = keys(tmp_path, image="{who}/{key}.png", label="gt/{key}.png", split=halves, split_by="who")
    assert {(split, key) for split, key, *_ in found} == {(halves.split_of("ann"), "1"), (halves.split_of("bob"), "2")}
    table = tmp_path / "pairs.csv"
    table.write_text("image,label,Patient\nann/1.png,gt/1.png,zoe\nbob/2.png,gt/2.png,zoe\n")
    found = keys(tmp_path, pairs=table, split=halves, split_by="Patient")
    assert {split for split, *_ in found} == {halves.split_of("zoe")}
    hundredths = Shares.parse(",".join(f"s{number}=1" for number in range(100)))
    table.write_text("image,label,Patient\nann/1.png,gt/1.png,Ren\u00e9\nbob/2.png,gt/2.png,Rene\u0301\n")
    found = keys(tmp_path, pairs=table, split=hundredths, split_by="Patient")
    assert {split for split, *_ in found} == {hundredths.split_of("Ren\u00e9")}
    with pytest.raises(UsageError, match=r"--split-by patient: .* only image, label, Patient"):
        find_pairs(tmp_path, PairingRules(pairs=table, split=halves, split_by="patient"))


def test_existing_splits_are_not_drawn_again(tmp_path: Path) -> None:
    touch(tmp_path, "train/images/a.png", "train/labels/a.png")
    with pytest.raises(InputError, match="--split: there are splits already, such as 'train'"):
        find_pairs(tmp_path, PairingRules(split=Shares.parse("50/50")))
    found = keys(tmp_path, image="*/images/{key}", label="*/labels/{key}", split=Shares.parse("50/50"))
    assert [row[1] for row in found] == ["a"]


def test_a_drawn_split_is_cut_like_any_other() -> None:
    """Drawing and cutting use different hashes. With one hash only the first split would have low values."""
    shares = Shares.parse("50/50")
    keys_of: dict[str, list[str]] = {"train": [], "val": []}
    for number in range(20_000):
        keys_of[shares.split_of(f"{number:05}")].append(f"{number:05}")
    for drawn in keys_of.values():
        low = np.count_nonzero(key_hashes(drawn) < (1 << 64) // 32)
        assert abs(low - len(drawn) / 32) < 4 * (len(drawn) / 32) ** 0.5


def test_the_command_line_draws_splits(tmp_path: Path) -> None:
    touch(tmp_path / "raw", *(f"{kind}/{number}.png" for kind in ("images", "labels") for number in range(30)))
    result = good("build", "--dry-run", "--split", "a=50,b=50", "--classes", 1, tmp_path / "raw", tmp_path / "out")
    assert "pairs     a " in result.stdout
    assert ", b " in result.stdout
