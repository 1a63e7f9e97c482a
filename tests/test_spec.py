"""Shards are cut where the keys say, so history leaves no trace; a spec is its JSON."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from packer.errors import EngineError
from packer.geometry import Geometry
from packer.pairing import Pair
from packer.pictures.rules import ImageRules
from packer.recipe import Recipe
from packer.spec import ShardSpec, cut
from readers.contract.classes import ClassTable, SegClass

RECIPE = Recipe(
    storage="npy",
    classes=ClassTable((SegClass("a", (1, 2, 3), (1,), ((1, 2, 3),)), SegClass("b", None, (2, 9))), (0,), ((0, 0, 0),)),
    geometry=Geometry((12, 34), "letterbox", "cubic"),
    image_dtype="float16",
    labels="index",
    unknown="ignore",
    rules=ImageRules((0.0, 10_000.0), "drop", 1_000_000),
    shard_bytes=10_000,
    image_template="images/{key}",
    label_template="labels/{key}",
    tools=("opencv 1", "npy 1.0"),
)


def pairs(keys: list[str]) -> list[Pair]:
    return [Pair("train", key, f"i/{key}.png", f"l/{key}.png") for key in sorted(keys)]


def shards(keys: list[str], rows: int) -> list[tuple[Pair, ...]]:
    return list(cut(pairs(keys), rows))


KEYS = st.lists(st.text("abcdef012/_ ", min_size=1, max_size=8), unique=True, max_size=200)


@given(KEYS, st.integers(1, 30))
def test_every_pair_is_in_one_shard_in_order_and_sizes_are_bounded(keys: list[str], rows: int) -> None:
    cuts = shards(keys, rows)
    assert [pair for shard in cuts for pair in shard] == pairs(keys)
    assert all(max(1, rows // 2) <= len(shard) <= 2 * rows for shard in cuts[:-1])
    assert all(1 <= len(shard) <= 2 * rows for shard in cuts[-1:])


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(2, 60))
def test_one_pair_more_or_less_changes_the_shards_around_it_only(seed: int, rows: int) -> None:
    keys = [f"frame_{seed}_{number:06d}" for number in range(3000)]
    before, without = set(shards(keys, rows)), set(shards(keys[:1500] + keys[1501:], rows))
    # Boundaries fall back into step at the next key that both ways of cutting agree on; nearly always at once.
    assert len(before - without) <= 8
    assert len(without - before) <= 8


def test_on_the_average_one_pair_touches_few_shards() -> None:
    keys = [f"frame_{number:06d}" for number in range(3000)]
    before = set(shards(keys, 20))
    touched = [len(set(shards(keys[:n] + keys[n + 1 :], 20)) - before) for n in range(0, 3000, 30)]
    assert sum(touched) / len(touched) < 1.6


def test_a_spec_is_its_json() -> None:
    spec = ShardSpec("train", tuple(pairs(["a", "b/ü c"])), RECIPE)
    assert ShardSpec.from_text(spec.to_text()) == spec
    assert ShardSpec.from_text(spec.to_text()).recipe.fingerprint() == RECIPE.fingerprint()


def test_a_spec_that_is_broken_says_where() -> None:
    text = ShardSpec("train", (), RECIPE).to_text().replace('"letterbox"', '"squeeze"').replace('"npy"', '"zip"')
    with pytest.raises(EngineError, match=r"recipe\.storage: .*recipe\.fit: expected one of"):
        ShardSpec.from_text(text)


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_tiny_shards_are_allowed(rows: int) -> None:
    assert sum(len(shard) for shard in shards([str(n) for n in range(50)], rows)) == 50
