"""`tf.train.Example`: the few messages of Protocol Buffers that it is made of, read strictly."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from packer.errors import BadPair
from packer.sources.portable_functions import plain

BYTES, WHOLE = 1, 3
"""The kinds of lists of a feature that are read; lists of floats are passed over."""
MOST_FEATURES = 1 << 16
_VARINT, _EIGHT, _MESSAGE, _FOUR = 0, 1, 2, 5
_SIGN = 1 << 63
Features = dict[str, memoryview]
"""The lists of values by their names, not parsed yet."""


def features_of(data: memoryview) -> Features:
    """Return the features of an Example by their names: {1: {1: {1: name, 2: feature}}}.

    What occurs twice is refused, because programs differ in which one they take.
    """
    by_name: Features = {}
    for features in _messages(data, 1):
        for entry in _messages(features, 1):
            name, feature = _name(_only(entry, 1)), _only(entry, 2)
            if name in by_name:
                raise BadPair(f"is not an Example: it has the feature {plain(name)} twice")
            if len(by_name) >= MOST_FEATURES:
                raise BadPair(f"has more than {MOST_FEATURES} features")
            by_name[name] = feature
    return by_name


def first_values(feature: memoryview) -> list[bytes | int]:
    """Return the first two values of a feature, {1 or 3: {1: values}}: enough to know whether there is only one."""
    lists = list(islice(_fields(feature), 2))
    if len(lists) > 1:
        raise BadPair("is not an Example: a feature with two lists of values")
    return [value for kind, values in lists if isinstance(values, memoryview) for value in _two(kind, values)]


def _two(kind: int, values: memoryview) -> list[bytes | int]:
    if kind == BYTES:
        return list(islice(_texts(values), 2))
    if kind == WHOLE:
        return list(islice(_numbers(values), 2))
    return []


def _texts(values: memoryview) -> Iterator[bytes]:
    return map(bytes, _messages(values, 1))


def _numbers(values: memoryview) -> Iterator[int]:
    """Yield whole numbers, which are stored one by one or packed, modulo 2**64."""
    for number, value in _fields(values):
        if number == 1:
            for whole in [value] if isinstance(value, int) else _packed(value):
                yield whole - 2 * _SIGN if whole >= _SIGN else whole


def _packed(data: memoryview) -> Iterator[int]:
    at = 0
    while at < len(data):
        number, at = _varint(data, at)
        yield number


def _name(text: memoryview) -> str:
    return bytes(text).decode("utf-8", "replace")


def _only(entry: memoryview, field_number: int) -> memoryview:
    """Return the field of an entry with this number, or nothing if it has none."""
    messages = list(islice(_messages(entry, field_number), 2))
    if len(messages) > 1:
        raise BadPair("is not an Example: a feature with two names or two lists")
    return messages[0] if messages else memoryview(b"")


def _messages(data: memoryview, field_number: int) -> Iterator[memoryview]:
    return (value for number, value in _fields(data) if number == field_number and isinstance(value, memoryview))


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
