"""Parse XML from other programs: without a document type, so without entities, and bounded in depth and number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.etree.ElementTree import XML, Element, ParseError
from xml.parsers import expat

from packer.annotations.json_values import MOST_BYTES
from packer.errors import BadPair

MOST_ELEMENTS = 4_000_000
FEW_ELEMENTS = 100_000
MOST_DEPTH = 100
TOO_DEEP = f"is XML nested deeper than {MOST_DEPTH}"


def parse_xml(data: bytes) -> Element:
    """Return the root of a file for one picture."""
    if len(data) > MOST_BYTES:
        raise BadPair(f"is larger than {MOST_BYTES >> 20} MiB, too large for the annotations of one picture")
    if (elements := data.count(b"<") - data.count(b"</")) > MOST_ELEMENTS:
        raise BadPair(f"is XML of more than {MOST_ELEMENTS} elements")
    checker = expat.ParserCreate()
    checker.StartDoctypeDeclHandler = _refuse_doctype
    if elements > FEW_ELEMENTS:
        depth = _Depth()
        checker.StartElementHandler, checker.EndElementHandler = depth.start, depth.end
    try:
        checker.Parse(data, True)  # a tree is made of a file without a document type only
        root = XML(data)
    except (expat.ExpatError, ParseError, ValueError, LookupError) as error:  # an unknown encoding is one of the latter
        raise BadPair(f"is not valid XML ({error})") from None
    _check_depth(root)
    return root


def root_or_none(data: bytes) -> Element | None:
    """Parse a file that may be anything. None: it is not XML."""
    if not data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        return None
    try:
        return parse_xml(data)
    except BadPair:
        return None


def text_in(element: Element, path: str) -> str | None:
    """Return the text of the first element at a path. None: there is none, or it is empty."""
    return (element.findtext(path) or "").strip() or None


def number_in(element: Element) -> float:
    """Return the number that an element holds."""
    try:
        number = float(element.text or "")
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise BadPair(f"has {(element.text or '')[:40]!r} in <{element.tag[:40]}>, which is not a finite number")
    return number


def numbers_in(elements: Sequence[Element]) -> list[float]:
    """Return the number that each element holds."""
    try:
        numbers = [float(element.text or "") for element in elements]
    except ValueError:
        numbers = [math.nan]
    return numbers if all(map(math.isfinite, numbers)) else [number_in(element) for element in elements]


def size_in(element: Element, height: str, width: str) -> tuple[int, int] | None:
    """Return the size of the picture that two elements hold. None: they hold none."""
    sides = [text_in(element, height) or "", text_in(element, width) or ""]
    if not all(len(side) < 10 and side.isascii() and side.isdigit() and int(side) for side in sides):
        return None
    return int(sides[0]), int(sides[1])


class _Depth:
    """The depth of elements while they are parsed, for files whose tree would take long."""

    def __init__(self) -> None:
        self._depth = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise BadPair(TOO_DEEP)

    def end(self, tag: str) -> None:
        self._depth -= 1


def _check_depth(root: Element) -> None:
    level = [root]
    for _ in range(MOST_DEPTH):
        level = [child for parent in level for child in parent]
        if not level:
            return
    raise BadPair(TOO_DEEP)


def _refuse_doctype(*_: object) -> None:
    raise BadPair("is XML with a document type, which could define entities; remove the <!DOCTYPE>")
