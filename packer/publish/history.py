"""Record which generation is current and when others stopped, for `packer repair` and the grace of `packer gc`."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from readers.contract.errors import DamagedError
from readers.contract.json_entry import loads
from readers.contract.manifest import GENERATIONS
from readers.stores.folder_store import store_of
from readers.stores.store import Store

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
    kept = kept_numbers(out)
    ended = {number: when for number, when in read_history(out).ended.items() if number in kept and number != new}
    store_of(out).put(HISTORY, History(new, {**ended, old: time.time()}).to_text().encode())


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
