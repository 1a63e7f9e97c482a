"""Record which generation is current and when others stopped, for `packer repair` and the grace of `packer gc`."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from packer.publish.conditional_writes import replaced
from readers.contract.errors import DamagedError
from readers.contract.json_entry import loads
from readers.contract.manifest import GENERATIONS
from readers.stores.folder_store import store_of
from readers.stores.store import Store, Version

DEFAULT_KEEP = 7
"""The generations that `packer gc` keeps by default."""
HISTORY = "history.json"
_MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class History:
    """The number of the current generation, if it is known, and the times at which others stopped being current."""

    current: int | None = None
    ended: Mapping[int, float] = field(default_factory=dict)

    def to_text(self) -> str:
        ended = {str(number): round(when, 3) for number, when in sorted(self.ended.items())}
        return json.dumps({"current": self.current, "ended": ended}, indent=1) + "\n"


def read_history(out: Path | Store) -> History:
    """Return the history of a pack, an empty one if none is kept.

    If the file is damaged, every generation may have been current until the file was last written.
    """
    store = store_of(out)
    try:
        return _parse(store.read(HISTORY, 0, _MOST_BYTES)[0])
    except FileNotFoundError:
        return History()
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError, DamagedError):
        written = max((entry.modified for entry in store.list("") if entry.name == HISTORY), default=time.time())
        return History(None, dict.fromkeys(kept_numbers(out), written))


def record_change(out: Path | Store, old: int, new: int) -> None:
    """Record that generation `old` stops being current and `new` is current. Call it before the manifest is swapped.

    If the process is killed before the swap, `old` has an end and is still current, which does no harm.
    """
    store, kept, written = store_of(out), kept_numbers(out), False
    while not written:  # until no other process has written in between: what it recorded is not lost
        version = _version(store)
        ended = {number: when for number, when in read_history(store).ended.items() if number in kept and number != new}
        text = History(new, {**ended, old: time.time()}).to_text()
        written = replaced(store, HISTORY, text.encode(), version)


def never_current(numbers: Iterable[int], current: int | None, history: History) -> set[int]:
    """Return the generations that were claimed and not published: their build was killed, or lost a race.

    Each one that was current has an end. A history may begin later than the pack.
    """
    first = min(history.ended, default=None)
    if first is None:
        return set()
    last = history.current if current is None else current
    return {number for number in numbers if number > first and number != last and number not in history.ended}


def _version(store: Store) -> Version | None:
    try:
        return store.read(HISTORY, 0, _MOST_BYTES)[1]
    except (FileNotFoundError, DamagedError):
        return None


def kept_numbers(out: Path | Store) -> set[int]:
    """Return the numbers of the generations that have a manifest, whole or damaged."""
    names = (entry.name.removeprefix(f"{GENERATIONS}/") for entry in store_of(out).list(GENERATIONS))
    stems = (name.removesuffix(".json") for name in names if name.endswith(".json"))
    return {int(stem) for stem in stems if stem.isdecimal()}


def _parse(data: bytes) -> History:
    document = loads(data)
    current = document["current"]
    ended = {int(number): float(when) for number, when in document["ended"].items()}
    if not (current is None or isinstance(current, int)) or not all(map(math.isfinite, ended.values())):
        raise ValueError("the history of generations is damaged")
    return History(current, ended)
