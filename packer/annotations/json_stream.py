"""Read a JSON file of any size in bounded memory: each item of its lists, with the bytes that it has in the file.

A window of the file is read as Latin-1, in which a character is a byte, so a place in the text is one in the file. JSON
needs only ASCII characters to be parsed. An item with others is parsed again as UTF-8.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple, NoReturn

from packer.annotations.json_values import parsed
from packer.errors import BadPair
from readers.contract.json_entry import RepeatedKeyError, unique

WINDOW = 1 << 22
MOST_ITEM = 16 << 20
"""The most bytes of an item, and of a member that is not a list."""
MOST_MEMBERS = 1000
BOM = b"\xef\xbb\xbf"
_SPACE = re.compile(r"[ \t\n\r]*")


class Item(NamedTuple):
    """A value of a list, or a member of the table that is not a list."""

    member: str
    """The name of the member; empty if the whole file is a list."""
    value: Any
    start: int
    """The place of its first byte in the file."""
    raw: bytes


def items_of(file: BinaryIO, most: int = MOST_ITEM, window: int = WINDOW) -> Iterator[Item]:
    """Yield the items of all lists of a JSON file in their order. Raise BadPair with the place of what is not valid."""
    text = _Window(file, most, window)
    first = text.next()
    if first == "[":
        yield from _list_of("", text)
    elif first == "{":
        yield from _members_of(text)
    else:
        text.refuse("begins with neither a table nor a list")
    if text.next():
        text.refuse("has more behind its end")


def parse(raw: bytes) -> Any:
    """Parse one item. Raise BadPair if it is not valid."""
    return parsed(raw, lambda item: _DECODER.decode(item.decode()))


def _members_of(text: _Window) -> Iterator[Item]:
    names = set[str]()
    text.skip()
    if text.next() == "}":
        text.skip()
        return
    while True:
        if text.next() != '"':
            text.refuse("has no name of a member")
        name = str(text.item("").value)
        if name in names or len(names) == MOST_MEMBERS:
            text.refuse(f"has {name[:60]!r} twice" if name in names else f"has more than {MOST_MEMBERS} members")
        names.add(name)
        if text.next() != ":":
            text.refuse("lacks a colon")
        text.skip()
        if text.next() == "[":
            yield from _list_of(name, text)
        else:
            yield text.item(name)
        if text.ends("}"):
            return


def _list_of(member: str, text: _Window) -> Iterator[Item]:
    text.skip()
    if text.next() == "]":
        text.skip()
        return
    while True:
        text.next()
        yield text.item(member)
        if text.ends("]"):
            return


class _Window:
    """A part of the file as a text, and the place in it up to which it was read."""

    def __init__(self, file: BinaryIO, most: int, window: int) -> None:
        self._file, self._most, self._window = file, most, window
        start = file.read(max(window, len(BOM)))
        bom = len(BOM) if start.startswith(BOM) else 0
        self._text, self._offset, self._at = start[bom:].decode("latin-1"), bom, 0
        self._is_whole = not start

    def next(self) -> str:
        """Return the next character behind white space, an empty text at the end."""
        while True:
            space = _SPACE.match(self._text, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._text) or self._is_whole:
                return self._text[self._at : self._at + 1]
            self._read_on()

    def skip(self) -> None:
        """Step over the next character."""
        self._at += 1

    def ends(self, end: str) -> bool:
        """Step over a comma or the end of a list or table, and return whether it was the end."""
        character = self.next()
        if character not in (",", end) or not character:
            self.refuse("ends too early" if not character else f"lacks a comma or {end}")
        self.skip()
        return character == end

    def item(self, member: str) -> Item:
        """Return the value at this place, and step over it."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except RecursionError:
                self.refuse("is nested too deeply")
            except _ConstantError as error:
                self.refuse(str(error))
            except RepeatedKeyError as error:
                self.refuse(f"has an item in which {error}")
            except json.JSONDecodeError as error:
                if self._is_whole:
                    self.refuse(f"is not valid JSON ({error.msg})", error.pos)
                if len(self._text) - self._at > self._most:
                    longer = f"has an item of more than {self._most} bytes"
                    self.refuse(f"{longer}, or one that is not valid JSON ({error.msg})", error.pos)
            except ValueError as error:
                self.refuse(f"has a number of too many digits ({error})")
            else:
                if end + 2 < len(self._text) or self._is_whole:  # of 1.5 and 1e+5 the beginning is a number, too
                    break
            self._read_on()
        if end - self._at > self._most:
            self.refuse(f"has an item of more than {self._most} bytes")
        start, raw = self._offset + self._at, self._text[self._at : end].encode("latin-1")
        if not self._text.isascii() and not raw.isascii():
            try:
                value = parse(raw)
            except BadPair as bad:
                self.refuse(str(bad))
        self._at = end
        return Item(member, value, start, raw)

    def refuse(self, reason: str, at: int | None = None) -> NoReturn:
        """Raise BadPair with the place in the file."""
        raise BadPair(f"{reason}, at byte {self._offset + (self._at if at is None else at)}")

    def _read_on(self) -> None:
        """Forget what was read, and read on: as much as is left, so that a long item is tried only a few times."""
        left = self._text[self._at :]
        more = self._file.read(max(self._window, len(left)))
        self._is_whole = not more
        self._offset += self._at
        self._text, self._at = left + more.decode("latin-1"), 0


class _ConstantError(ValueError):
    """A number that JSON does not have."""


def _refuse_constant(name: str) -> NoReturn:
    raise _ConstantError(f"has the number {name}, which JSON does not have")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=unique)
