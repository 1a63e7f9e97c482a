"""`tf.train.Example`: the few messages of Protocol Buffers that it is made of, read strictly."""

from __future__ import annotations

from collections.abc import Iterator

from packer.errors import BadPair

BYTES, WHOLE = 1, 3
"""The kinds of lists of a feature that are read; those of floats are passed over."""
_VARINT, _EIGHT, _MESSAGE, _FOUR = 0, 1, 2, 5
Features = dict[str, "list[bytes] | list[int]"]


def features_of(data: memoryview) -> Features:
    """Return the lists of an Example by their names: {1: {1: {1: name, 2: {1 or 3: {1: values}}}}}."""
    found: Features = {}
    for features in _messages(data, 1):
        for entry in _messages(features, 1):
            name, values = "", memoryview(b"")
            for number, value in _fields(entry):
                if number == 1 and isinstance(value, memoryview):
                    name = bytes(value).decode("utf-8", "replace")
                elif number == 2 and isinstance(value, memoryview):
                    values = value
            found[name] = _values(values)
    return found


def _values(feature: memoryview) -> list[bytes] | list[int]:
    texts: list[bytes] = []
    numbers: list[int] = []
    for kind, values in _fields(feature):
        if not isinstance(values, memoryview):
            continue
        for number, value in _fields(values) if kind in (BYTES, WHOLE) else ():
            if kind == BYTES and number == 1 and isinstance(value, memoryview):
                texts.append(bytes(value))
            elif kind == WHOLE and number == 1:
                numbers += [value] if isinstance(value, int) else _packed(value)
    return texts or numbers


def _packed(data: memoryview) -> list[int]:
    numbers, at = [], 0
    while at < len(data):
        number, at = _varint(data, at)
        numbers.append(number)
    return numbers


def _messages(data: memoryview, wanted: int) -> Iterator[memoryview]:
    return (value for number, value in _fields(data) if number == wanted and isinstance(value, memoryview))


def _fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield the number and the value of each field: a whole number, or the bytes of anything else."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind, size = tag & 7, 0
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield tag >> 3, value
            continue
        if kind == _MESSAGE:
            size, at = _varint(data, at)
        elif kind in (_EIGHT, _FOUR):
            size = 8 if kind == _EIGHT else 4
        else:
            raise BadPair(f"is not an Example: a field of the kind {kind}")
        if size > len(data) - at:
            raise BadPair(f"is not an Example: a field of {size} bytes where {len(data) - at} are left")
        yield tag >> 3, data[at : at + size]
        at += size


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """Return a number of at most 64 bits, 7 in each byte, and the position after it."""
    number = 0
    for shift in range(0, 70, 7):
        if at + shift // 7 >= len(data):
            break
        byte = data[at + shift // 7]
        number |= (byte & 127) << shift
        if byte < 128:
            return number & (1 << 64) - 1, at + shift // 7 + 1
    raise BadPair("is not an Example: a number without an end")
