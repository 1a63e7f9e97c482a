"""The palette of a class table: its own colours, and generated ones that are well apart and stay when classes come."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import python
from hypothesis import given
from hypothesis import strategies as st

from readers.contract.classes import MOST_CLASSES, ClassTable, DrawnColour, SegClass
from readers.contract.palette import OKABE_ITO, Palette, apart, hex_of

COLOURS = st.one_of(st.none(), st.tuples(*[st.integers(0, 255)] * 3))


def table(colours: list[DrawnColour | None], *ignored: tuple[int, ...]) -> ClassTable:
    classes = tuple(SegClass(f"class {number}", colour) for number, colour in enumerate(colours))
    return ClassTable(classes, ignored_colours=ignored)  # type: ignore[arg-type]


@given(st.lists(COLOURS, min_size=1, max_size=12), st.integers(0, 9))
def test_colours_of_the_table_win_and_appended_classes_change_none(
    colours: list[DrawnColour | None], more: int
) -> None:
    palette = table(colours).palette
    assert all(found == colour for found, colour in zip(palette, colours, strict=True) if colour is not None)
    assert list(table([*colours, *[None] * more]).palette)[: len(colours)] == list(palette)


def test_an_appended_class_changes_another_only_if_it_has_nearly_its_colour() -> None:
    before = table([None] * 9).palette
    assert table([*[None] * 9, (255, 255, 0)]).palette[:9] == before[:]
    after = table([*[None] * 9, before[3]]).palette
    assert len({*after}) == 10
    assert after[:3] == before[:3]


def test_generated_colours_differ_from_each_other_and_from_those_of_the_table() -> None:
    given_colours: list[DrawnColour | None] = [(47, 116, 208), None, None, (224, 123, 31), *[None] * 60]
    rgb = table(given_colours).palette.rgb.astype(int)
    distance = np.abs(rgb[:, None] - rgb[None]).sum(2)
    np.fill_diagonal(distance, 999)
    assert distance.min() >= 40
    assert len({*map(tuple, apart(200).tolist())}) == 200


def test_a_palette_is_what_drawing_functions_take() -> None:
    palette = table([(0, 128, 0), None, (1, 2, 3)], (0, 0, 0, 0), (1, 2, 3), (9, 8, 7)).palette
    assert (palette[0], palette[-1], palette[::2]) == ((0, 128, 0), (1, 2, 3), ((0, 128, 0), (1, 2, 3)))
    assert palette.rgb.shape == (3, 3)
    assert palette.rgb.dtype == np.uint8
    assert np.array_equal(np.asarray(palette), palette.rgb)
    assert palette.hex[0] == hex_of((0, 128, 0)) == "#008000"
    assert palette.ignored == (9, 8, 7), "the first opaque ignored colour that is not the colour of a class"
    label = np.array([[0, 2], [255, 1]], np.uint8)
    assert palette.lookup[label].tolist() == [[[0, 128, 0], [1, 2, 3]], [[9, 8, 7], list(palette[1])]]
    assert repr(palette).startswith("Palette(3 colours: #008000, ")
    with pytest.raises(ValueError, match="read-only"):
        palette.rgb[0] = 0


def test_the_palette_for_colour_blind_people_begins_with_that_of_okabe_and_ito() -> None:
    blind = table([(255, 0, 0)] * 40).palette.colour_blind
    assert blind[: len(OKABE_ITO)] == OKABE_ITO
    assert len({*blind}) == 40


def test_a_table_of_all_classes_has_a_palette_that_follows_from_nothing_else() -> None:
    """In another process, the colours are the same; comparing tables does not see the palette."""
    big = table([None] * MOST_CLASSES)
    palette = big.palette
    assert len({*palette[300:]}) == MOST_CLASSES - 300
    assert palette.lookup.shape == (65_536, 3)
    assert big == table([None] * MOST_CLASSES)
    code = "from readers.contract.palette import palette_of; print(palette_of([None] * 300, (), 65535).rgb.sum(0))"
    done = python("-c", code)
    assert done.stdout.strip() == str(palette.rgb[:300].sum(0))


def test_ignored_pixels_never_have_the_colour_of_a_class() -> None:
    every_grey: list[DrawnColour | None] = [(222, 222, 222), (221, 221, 221)]
    assert table(every_grey).palette.ignored == (220, 220, 220)
    assert isinstance(table(every_grey).palette, Palette)
