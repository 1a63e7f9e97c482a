"""A JSON file is read item by item, in any window, and what is not valid is refused with its place."""

from __future__ import annotations

import io
import json

import pytest

from packer.annotations.json_stream import BOM, items_of, parse
from packer.errors import BadPair

DOCUMENT = {
    "info": {"year": 2017},
    "images": [{"id": 1, "file_name": "größe/ä.jpg"}, {"id": 2, "file_name": '"}],\\'}],
    "empty": [],
    "none": {},
    "number": 12345,
    "annotations": [[], {}, 1.5, None, "text", {"deep": [[[{"a": []}]]]}],
}


@pytest.mark.parametrize("window", [1, 2, 3, 7, 64, 1 << 20])
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_every_window_gives_the_same_items(window: int, indent: int | None, ascii_only: bool) -> None:
    data = BOM * (not ascii_only) + json.dumps(DOCUMENT, indent=indent, ensure_ascii=ascii_only).encode()
    found = list(items_of(io.BytesIO(data), window=window))
    assert [(item.member, item.value) for item in found] == [
        (name, value)
        for name, values in DOCUMENT.items()
        for value in (values if isinstance(values, list) else [values])
    ]
    for item in found:
        assert json.loads(data[item.start : item.start + len(item.raw)]) == item.value


def test_a_list_has_items_without_a_name() -> None:
    found = [(item.member, item.value) for item in items_of(io.BytesIO(b' [ 1, {"a": 2} ]\n'), window=2)]
    assert found == [("", 1), ("", {"a": 2})]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "begins with neither a table nor a list, at byte 0"),
        (b"\x00", "begins with neither"),
        (b"12", "begins with neither"),
        (b"[1, 2", "ends too early, at byte 5"),
        (b"[1 2]", r"lacks a comma or \], at byte 3"),
        (b"[1,]", r"not valid JSON \(Expecting value\), at byte 3"),
        (b'{"a" 1}', "lacks a colon, at byte 5"),
        (b"{1: 1}", "no name of a member, at byte 1"),
        (b'{"a": 1, "a": 2}', "has 'a' twice"),
        (b'{"a": 1} x', "has more behind its end, at byte 9"),
        (b'{"a": [NaN]}', "has the number NaN, which JSON does not have, at byte 7"),
        (b'[{"a": -Infinity}]', "has the number -Infinity"),
        (b'{"a": ["\xff"]}', r"not valid JSON \(.*invalid start byte.*\), at byte 7"),
        (b'["a\nb"]', "Invalid control character"),
        (b"[" * 100_000, "nested too deeply, at byte 1"),
        (b"[" + b"1" * 5000 + b"]", "too many digits"),
        (b'["' + b"a" * 9000 + b'"]' + b" " * 9000, "more than 1000 bytes"),
        (b'["' + b"a" * 9000, "Unterminated string"),
        (b"{" + b",".join(b'"%d":0' % i for i in range(1001)) + b"}", "more than 1000 members"),
    ],
    ids=range(19),
)
def test_what_is_not_valid_is_refused_with_its_place(data: bytes, words: str) -> None:
    for window in (64, 1 << 20):
        with pytest.raises(BadPair, match=words):
            list(items_of(io.BytesIO(data), most=1000 if b"aaaa" in data else 1 << 24, window=window))


def test_only_a_window_of_the_file_is_held() -> None:
    class Counted(io.BytesIO):
        largest = 0

        def read(self, size: int | None = -1) -> bytes:
            self.largest = max(self.largest, size or 0)
            return super().read(size)

    file = Counted(b"[" + b",".join(b'{"a": "%s"}' % (b"x" * 100) for _ in range(2000)) + b"]")
    assert sum(1 for _ in items_of(file, window=1000)) == 2000
    assert file.largest <= 1000


@pytest.mark.parametrize("window", [64, 1 << 20])
def test_a_key_that_occurs_twice_in_an_item_is_refused(window: int) -> None:
    text = b'{"images": [{"id": 1}, {"id": 2, "more": [{"name": "\xc3\xa9", "id": 1, "id": 2}]}]}'
    with pytest.raises(BadPair, match=r"has an item in which the key 'id' occurs twice, at byte 23"):
        list(items_of(io.BytesIO(text), window=window))
    with pytest.raises(BadPair, match="the key 'id' occurs twice"):
        parse(b'{"id": 1, "id": 2}')
