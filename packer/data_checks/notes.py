"""The notes of a build: facts that a source noticed about rows that are packed nevertheless."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby, islice

from readers.contract.receipt import Receipt

MOST_NOTES = 20


@dataclass(frozen=True)
class Notes:
    """The number of rows with a note, and the first of them. All notes are in the receipts."""

    rows: int = 0
    first: tuple[tuple[str, str, str], ...] = ()
    """Split, key and text."""


def notes_of(receipts: Sequence[Receipt], name: Callable[[str], str]) -> Notes:
    """Count the notes. Tiles of one picture, which `name` makes of their keys, follow each other and count once."""
    notes = ((receipt.split, name(note.key), note.text) for receipt in receipts for note in receipt.notes)
    once = (note for note, _ in groupby(notes))
    first = tuple(islice(once, MOST_NOTES))
    return Notes(len(first) + sum(1 for _ in once), first)
