"""The keys decide where shards are cut, so history leaves no trace; a spec equals its JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packer.decoding.rules import ImageRules
from packer.errors import EngineError
from packer.pixels.label_rules import LabelRules
from packer.pixels.number_rules import IdRules, MultilabelRules, ValueRules
from packer.pixels.resize import Geometry
from packer.plan.size_sample import scattered, spread_pieces
from packer.publish.recipe_changes import recipe_changes
from packer.recipe.cut import cut
from packer.recipe.field_rule import FieldRule
from packer.recipe.piece import Piece
from packer.recipe.recipe import Recipe
from packer.recipe.row_ref import RowRef
from packer.recipe.shard_spec import ShardSpec
from readers.contract.classes import ClassTable, SegClass
from readers.contract.fields import Field, classes_field, picture_field

SIZE = (12, 34)
CLASSES = ClassTable((SegClass("a", (1, 2, 3), (1,), ((1, 2, 3),)), SegClass("b", None, (2, 9))), (0,), ((0, 0, 0),))
PARTS = ClassTable((SegClass("wheel"), SegClass("door")))
RECIPE = Recipe(
    storage="npy",
    geometry=Geometry(SIZE, "letterbox", "cubic"),
    rules=(
        FieldRule(picture_field("image", "<f2", SIZE), ImageRules((0.0, 10_000.0), "drop", 1_000_000), "images/{key}"),
        FieldRule(classes_field("label", "index", CLASSES, SIZE), LabelRules("auto", "ignore"), "labels/{key}"),
    ),
    shard_bytes=10_000,
    tools=("opencv 1", "npy 1.0"),
)
FURTHER = (
    FieldRule(Field("ids", "ids", "index", "<u4", SIZE), IdRules("panoptic")),
    FieldRule(Field("depth", "values", "index", "<f4", SIZE, fill="nan"), ValueRules(0.5, 0.001, "linear")),
    FieldRule(
        Field("parts", "multilabel", "bits", "|u1", (1, *SIZE), classes=PARTS), MultilabelRules(), "{class}/{key}"
    ),
)


def pairs(keys: list[str]) -> list[Piece]:
    return [Piece(RowRef("train", key, (f"i/{key}.png", f"l/{key}.png"))) for key in sorted(keys)]


def row_bytes(recipe: Recipe, pieces: Sequence[Piece]) -> int:
    return int(recipe.row_bytes(pieces).sum())


def shards(keys: list[str], rows: int) -> list[tuple[Piece, ...]]:
    recipe = replace(RECIPE, shard_bytes=rows * row_bytes(RECIPE, pairs(["a"])))
    return list(map(tuple, cut(pairs(keys), recipe)))


KEYS = st.lists(st.text("abcdef012/_ ", min_size=1, max_size=8), unique=True, max_size=200)


@given(KEYS, st.integers(1, 30))
def test_every_pair_is_in_one_shard_in_order_and_sizes_are_bounded(keys: list[str], rows: int) -> None:
    cuts = shards(keys, rows)
    assert [pair for shard in cuts for pair in shard] == pairs(keys)
    assert all(max(1, rows // 2) <= len(shard) <= 2 * rows for shard in cuts[:-1])
    assert all(1 <= len(shard) <= 2 * rows for shard in cuts[-1:])


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


def one_by_one(pieces: list[Piece], recipe: Recipe) -> list[tuple[Piece, ...]]:
    """The definition of a cut, as a loop that sees one piece after the other."""
    shards: list[tuple[Piece, ...]] = []
    waiting: list[tuple[Piece, int, int]] = []
    sizes, full = recipe.weights(pieces)

    def end_at_lowest() -> None:
        total, lowest, end = 0, 1 << 64, len(waiting)
        for number, (_, weight, digest) in enumerate(waiting):
            total += weight
            if digest < lowest and total >= max(1, full // 2):
                lowest, end = digest, number + 1
        shards.append(tuple(piece for piece, _, _ in waiting[:end]))
        del waiting[:end]

    for piece, weight in zip(pieces, map(int, sizes), strict=True):
        while waiting and sum(waited for _, waited, _ in waiting) + weight > 2 * full:
            end_at_lowest()
        digest = int.from_bytes(blake2b(piece.key.encode(), digest_size=8).digest(), "big")
        waiting.append((piece, weight, digest))
        total = sum(waited for _, waited, _ in waiting)
        if total >= max(1, full // 2) and digest < (weight << 64) // full:
            shards.append(tuple(piece for piece, _, _ in waiting))
            waiting.clear()
        elif total >= 2 * full:
            end_at_lowest()
    return [*shards, *([tuple(piece for piece, _, _ in waiting)] if waiting else [])]


@given(KEYS, st.integers(1, 30))
def test_shards_are_cut_as_they_are_defined(keys: list[str], rows: int) -> None:
    recipe = replace(RECIPE, shard_bytes=rows * row_bytes(RECIPE, pairs(["a"])))
    assert list(map(tuple, cut(pairs(keys), recipe))) == one_by_one(pairs(keys), recipe)


@given(st.lists(st.integers(1, 60), max_size=120), st.sampled_from([1, 300, 2000, 10_000, 1 << 62, 1 << 70]))
def test_native_shards_are_cut_as_they_are_defined(sizes: list[int], shard_bytes: int) -> None:
    recipe = replace(NATIVE, shard_bytes=shard_bytes)
    assert list(map(tuple, cut(native(sizes), recipe))) == one_by_one(native(sizes), recipe)


def test_a_spec_is_its_json() -> None:
    spec = ShardSpec("train", tuple(pairs(["a", "b/ü c"])), RECIPE)
    assert ShardSpec.from_text(spec.to_text()) == spec
    assert ShardSpec.from_text(spec.to_text()).recipe.fingerprint() == RECIPE.fingerprint()


def test_a_spec_that_is_broken_says_where() -> None:
    text = ShardSpec("train", (), RECIPE).to_text().replace('"letterbox"', '"squeeze"').replace('"npy"', '"zip"')
    with pytest.raises(EngineError, match=r"recipe\.storage: .*recipe\.fit: expected one of"):
        ShardSpec.from_text(text)


def test_a_sample_of_rows_is_spread_over_all_shards() -> None:
    specs = [ShardSpec("train", tuple(pairs([f"{n}-{row:02}" for row in range(100)])), RECIPE) for n in range(9)]
    keys = [piece.key for spec in spread_pieces(specs, scattered(900, 256)) for piece in spec.pieces]
    assert len(keys) == 256
    assert keys == sorted(set(keys))
    assert all(sum(key[0] == shard for key in keys) in (28, 29) for shard in "012345678")
    assert scattered(7, 8) == list(range(7))


NATIVE = replace(RECIPE, geometry=Geometry(None, "native"))


def native(sizes: list[int]) -> list[Piece]:
    return [Piece(RowRef("train", f"frame_{number:05d}", ("i", "l")), (size, 7)) for number, size in enumerate(sizes)]


@given(st.lists(st.integers(1, 60), max_size=120))
def test_native_shards_are_cut_by_their_bytes(sizes: list[int]) -> None:
    cuts = list(cut(native(sizes), NATIVE))
    assert [piece for shard in cuts for piece in shard] == native(sizes)
    for number, shard in enumerate(cuts):
        weight = row_bytes(NATIVE, shard)
        assert weight <= 2 * NATIVE.shard_bytes or len(shard) == 1
        following = cuts[number + 1 : number + 2]
        heavy = following and row_bytes(NATIVE, following[0][:1]) > NATIVE.shard_bytes
        assert weight >= NATIVE.shard_bytes // 2 or not following or heavy


def test_one_native_picture_more_or_less_changes_the_shards_around_it_only() -> None:
    pieces = native([1 + number * 7919 % 40 for number in range(2000)])
    before = set(map(tuple, cut(pieces, NATIVE)))
    touched = [len(set(map(tuple, cut(pieces[:n] + pieces[n + 1 :], NATIVE))) - before) for n in range(0, 2000, 40)]
    assert sum(touched) / len(touched) < 2


def test_a_native_spec_and_a_tile_are_their_json() -> None:
    tile = Piece(RowRef("train", "a", ("i", "l")), (9, 9), (1, 2))
    assert tile.key == "a@000001+000002of9x9"
    for recipe, pieces in ((NATIVE, native([3, 4])), (RECIPE, [tile])):
        spec = ShardSpec("train", tuple(pieces), recipe)
        assert ShardSpec.from_text(spec.to_text()) == spec


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_tiny_shards_are_allowed(rows: int) -> None:
    assert sum(len(shard) for shard in shards([str(n) for n in range(50)], rows)) == 50


def test_rules_of_every_kind_are_read_back() -> None:
    recipe = replace(RECIPE, rules=RECIPE.rules + FURTHER)
    spec = ShardSpec("train", pairs(["a"]), recipe)
    assert ShardSpec.from_text(spec.to_text()).recipe == recipe


def test_recipe_changes_name_fields() -> None:
    image, label = RECIPE.rules
    now = replace(RECIPE, rules=(image, replace(label, template="masks/{key}")))
    assert recipe_changes(RECIPE.to_json(), now.to_json()) == (("label.from", "labels/{key}", "masks/{key}"),)
    assert recipe_changes({"fields": "none"}, {"fields": [1]}) == (("fields", "none", [1]),)


def test_recipe_changes_name_keys_of_either_side() -> None:
    assert recipe_changes({"a": 1, "old": 2}, {"a": 1, "b": 3}) == (("old", 2, None), ("b", None, 3))
