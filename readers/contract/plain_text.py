"""Texts from files, made harmless: what a terminal or a page would obey is shown as its code."""

from __future__ import annotations

import re

UNSAFE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
"""Control characters except the line feed, marks that change the direction of text, and bytes that are not UTF-8."""


NOT_IN_A_NAME = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Characters that the name of a class must not have: controls, line feeds, and those that UTF-8 cannot write."""


def odd_character(name: str) -> str | None:
    """Return the code of a character that the name of a class must not have; None if it is a good name."""
    match = NOT_IN_A_NAME.search(name)
    return None if match is None else code_of(match[0])


def harmless(text: str) -> str:
    r"""Return a text with `\u001b` instead of what a terminal obeys. In JSON this is the same character."""
    return UNSAFE.sub(lambda match: code_of(match[0]), text)


def one_line(text: str) -> str:
    """Return a harmless text without line feeds: a name cannot pretend to be another line."""
    return harmless(text).replace("\n", code_of("\n"))


def code_of(character: str) -> str:
    r"""Return a character as its code, such as `\u202e`."""
    return f"\\u{ord(character):04x}"
