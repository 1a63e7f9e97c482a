"""The row of a key, by binary search: the rows of each part are sorted by their keys."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from itertools import accumulate, pairwise

from readers.contract.errors import RequestError, UnknownKeyError
from readers.contract.plain_text import one_line
from readers.contract.tiles import Origin, Tile
from readers.pack import Pack

NEAR, MOST_NEAR = 24, 3
"""The rows around an unknown key that are searched for names like it, and the most names in a message."""
Order = tuple[str, Origin]


def find_key(pack: Pack, key: str, *rows: range) -> int:
    """Return the row with this key among rows of the pack that are whole splits or parts."""
    matches = rows_with_key(pack, key, *rows)
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise UnknownKeyError(f"there is no row with the key {_shown(key)}{_near_names(pack, key, rows)}")
    splits = [split.name for split, _, rows_of_split in pack.splits() if any(row in rows_of_split for row in matches)]
    raise UnknownKeyError(f"the key {_shown(key)} is in the splits {', '.join(splits)}: open one of them")


def rows_with_key(pack: Pack, key: str, *rows: range) -> list[int]:
    """Return the rows with this key: at most one of each split. A few shards of each part are opened."""
    return [row for part in _parts(pack, rows) for row in _search(pack, key, part)]


def _search(pack: Pack, key: str, part: range) -> list[int]:
    """Tiles are sorted by picture and position, which is another order than the order of their texts."""
    orders = [_text] if _tile(key) == _text(key) else [_text, _tile]
    for order in orders:
        row = _first(pack, part, key, order)
        if row in part and _key(pack, row) == key:
            return [row]
    return []


def _first(pack: Pack, part: range, key: str, order: Callable[[str], Order]) -> int:
    """Return the first row of a part that does not come before the key."""
    return part.start + bisect_left(part, order(key), key=lambda row: order(_key(pack, row)))


def _parts(pack: Pack, rows: Sequence[range]) -> list[range]:
    """Return the parts of the pack that are within these rows."""
    counts = [part.rows for split in pack.manifest.splits for part in split.parts]
    edges = list(pairwise(accumulate(counts, initial=0)))
    both = [range(max(start, some.start), min(stop, some.stop)) for some in rows for start, stop in edges]
    return [part for part in both if part]


def _near_names(pack: Pack, key: str, rows: Sequence[range]) -> str:
    """Return a proposal: keys like this one, of the rows around it in the order of keys."""
    around: list[str] = []
    for part in _parts(pack, rows):
        row = _first(pack, part, key, _text)
        near = range(max(part.start, row - NEAR), min(part.stop, row + NEAR))
        around += [_key(pack, row) for row in near]
    begins = key, f"{key.partition('@')[0]}@"
    best = get_close_matches(key, around, MOST_NEAR, 0.5) or [near for near in around if near.startswith(begins)]
    best = best or _tiles_of_near_pictures(key, around)
    return f"; near it are {', '.join(map(_shown, best[:MOST_NEAR]))}" if best else ""


def _tiles_of_near_pictures(key: str, around: list[str]) -> list[str]:
    """Return a tile of each picture whose name is like a name without the place of a tile."""
    tiles = {tile.partition("@")[0]: tile for tile in reversed(around)}
    return [tiles[picture] for picture in get_close_matches(key.partition("@")[0], tiles, MOST_NEAR)]


def _key(pack: Pack, row: int) -> str:
    shard, inside = pack.table.locate(row)
    return pack.shard(shard).key(inside)


def _text(key: str) -> Order:
    return key, (0, 0)


def _tile(key: str) -> Order:
    try:
        tile = Tile.of(key)
    except RequestError:
        return _text(key)
    return tile.picture, tile.origin


def _shown(key: str) -> str:
    return repr(one_line(key) if len(key) <= 120 else f"{one_line(key[:60])}…{one_line(key[-60:])}")
