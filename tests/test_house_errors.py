"""Messages that list many things show the first of them and count the rest."""

from __future__ import annotations

import re

from conftest import REPO

from packer.errors import first_of, some_are

COUNTED_BY_HAND = re.compile(r'\{len\(.*\) - (?!1\})\w+\} more|… ?[({].* in all|\[:MOST_NAMED\]|, …" if')


def test_a_short_list_is_shown_whole() -> None:
    assert first_of(["a", "b"], 2) == ["a", "b"]
    assert first_of([], 2) == []


def test_a_long_list_ends_with_a_count_of_the_rest() -> None:
    assert first_of(["a", "b", "c"], 2) == ["a", "b", "… and 1 more"]
    assert first_of(range(100), 1, "sizes", lambda size: f"{size} px") == ["0 px", "… and 99 more sizes"]


def test_numbers_agree_with_their_nouns_and_verbs() -> None:
    assert some_are(1, 1, "pair") == "1 of 1 pair is"
    assert some_are(1, 8, "pair") == "1 of 8 pairs is"
    assert some_are(2, 8, "pair") == "2 of 8 pairs are"


def test_only_the_items_that_are_shown_become_text() -> None:
    shown: list[int] = []

    def show(item: int) -> str:
        shown.append(item)
        return str(item)

    first_of(range(1_000_000), 3, show=show)
    assert shown == [0, 1, 2]


def test_no_module_cuts_its_lists_by_hand() -> None:
    by_hand = [
        f"{path.relative_to(REPO)}:{number}: {line.strip()}"
        for path in sorted((REPO / "packer").rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if COUNTED_BY_HAND.search(line)
    ]
    assert not by_hand
