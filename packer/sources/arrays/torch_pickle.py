"""Find the tensors in what `torch.save` pickled. Nothing is imported or called: a tensor becomes the facts about it.

Pickle is a list of operations on a stack. Those that `torch.save` writes are done here one after the other, so time and
memory follow from their number, which is limited. A container that holds another one twice, or itself, costs nothing.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

MOST_OPERATIONS = 1 << 22
"""The most operations of a file: two for each text or number, thirty for each tensor."""
DTYPES = {
    "Float": "float32",
    "Double": "float64",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Bool": "bool",
    "Byte": "uint8",
    "Char": "int8",
    "Short": "int16",
    "Int": "int32",
    "Long": "int64",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
}
"""The numbers in a storage, by the name that it has in the file, such as FloatStorage."""
KNOWN = {
    "_codecs encode",
    "collections Counter",
    "torch Size",
    "torch device",
    "torch.serialization _get_layout",
    *(f"{module} {name}" for module in ("__builtin__", "builtins") for name in ("set", "bytearray", "complex")),
}
"""Functions whose results a file may hold next to tensors. They are passed over."""
NEW: dict[str, Callable[[], Any]] = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
VALUES = {
    *("BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
    *("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
}
MOST_AXES = 64


@dataclass(frozen=True)
class Name:
    """A function, a class or a type that a file names."""

    text: str


@dataclass(frozen=True)
class Storage:
    """Numbers of a type, and the name of the member of the file that has them."""

    dtype: str
    member: str


@dataclass(frozen=True)
class Tensor:
    """The facts of a tensor. The offset and the strides count numbers, not bytes."""

    dtype: str
    member: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    is_plain: bool = True
    """False if the numbers in the file are not the values, or not all."""

    @property
    def is_contiguous(self) -> bool:
        expected = 1
        for side, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if side != 1 and stride != expected:
                return 0 in self.shape
            expected *= side
        return self.is_plain


OTHER = Name("")
"""Anything besides tensors, names and numbers."""


def tensors_in(data: bytes) -> Any:
    """Return the dictionaries, lists, texts and tensors that were pickled. Raise ValueError at anything else."""
    machine = _Machine()
    try:
        for count, (operation, argument, _) in enumerate(pickletools.genops(data)):
            if operation.name == "STOP":
                return machine.stack[-1]
            if count >= MOST_OPERATIONS:
                raise _TooManyOperationsError(f"has more than {MOST_OPERATIONS} pickled operations; save fewer tensors")
            machine.step(operation.name, argument)
    except (_TooManyOperationsError, _ForeignError):
        raise
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
        raise ValueError("is damaged: it was not pickled by torch.save") from error
    raise ValueError("is damaged: what was pickled has no end")


class _TooManyOperationsError(ValueError): ...


class _ForeignError(ValueError):
    def __init__(self, name: str) -> None:
        super().__init__(f"holds objects besides tensors, which are never built ({name})")


class _Machine:
    """The stack, the stacks below it that marks put aside, and the memo."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []
        self.memo: dict[int, Any] = {}

    def step(self, name: str, argument: Any) -> None:
        if name in VALUES:
            self.stack.append(argument)
        elif name in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
            self.memo[len(self.memo) if argument is None else argument] = self.stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            self.stack.append(self.memo[argument])
        elif name in CONSTANTS:
            self.stack.append(CONSTANTS[name])
        elif name in NEW:
            self.stack.append(NEW[name]())
        elif name == "MARK":
            self.below.append(self.stack)
            self.stack = []
        elif name == "GLOBAL":
            self.stack.append(Name(argument))
        elif name in _FROM_LAST:
            self._replace(*_FROM_LAST[name])
        elif name == "TUPLE":
            items, self.stack = self.stack, self.below.pop()
            self.stack.append(tuple(items))
        elif name in _FROM_MARK:
            items, self.stack = self.stack, self.below.pop()
            _FROM_MARK[name](self.stack[-1], items)
        elif name not in ("PROTO", "FRAME"):
            raise _ForeignError(name)

    def _replace(self, count: int, function: Callable[..., Any]) -> None:
        """Replace the last items of the stack by what a function makes of them."""
        items = self.stack[-count:]
        if len(items) != count:
            raise LookupError("the stack is too short")
        self.stack[-count:] = [function(*items)]


def _extend(elements: Any, items: Sequence[Any]) -> Any:
    if not isinstance(elements, list):
        raise TypeError("only a list has items to append")
    elements.extend(items)
    return elements


def _set_items(dictionary: Any, items: Sequence[Any]) -> Any:
    """Keep what has a name. Other keys are not hashed: nested tuples could take for ever."""
    if not isinstance(dictionary, dict):
        raise TypeError("only a dictionary has keys")
    for key, value in zip(items[::2], items[1::2], strict=True):
        if isinstance(key, str):
            dictionary[key] = value
    return dictionary


def _called(function: Any, arguments: Any) -> Any:
    """Return what stands for the result of a function."""
    name = function.text
    if name in ("torch._utils _rebuild_tensor", "torch._utils _rebuild_tensor_v2"):
        storage, offset, shape, strides, *more = arguments
        return _tensor(storage, offset, shape, strides, storage.dtype, more[2:])
    if name == "torch._utils _rebuild_tensor_v3":
        storage, offset, shape, strides, _, _, dtype, *more = arguments
        return _tensor(storage, offset, shape, strides, dtype.text.removeprefix("torch "), more)
    if name.startswith("torch._utils _rebuild_parameter"):
        return arguments[0]
    if name.startswith("torch._utils _rebuild_"):
        return Tensor("numbers of another layout", "", 0, (), (), is_plain=False)
    if name == "collections OrderedDict":
        return {}
    if name not in KNOWN:
        raise _ForeignError(name)
    return OTHER


def _tensor(storage: Storage, offset: Any, shape: Any, strides: Any, dtype: str, metadata: list[Any]) -> Tensor:
    sides, steps = tuple(map(index, shape)), tuple(map(index, strides))
    numbers = (index(offset), *sides)
    if len(sides) != len(steps) or len(sides) > MOST_AXES or min(numbers) < 0 or max(numbers) >= 1 << 63:
        raise ValueError("impossible sides")
    return Tensor(dtype, storage.member, index(offset), sides, steps, is_plain=not any(metadata))


def _storage(persistent_id: Any) -> Storage:
    kind, name, member = persistent_id[:3]
    if kind != "storage" or not isinstance(member, str):
        raise ValueError("not a storage")
    dtype = name.text.rpartition(" ")[2].removesuffix("Storage")
    return Storage(DTYPES.get(dtype, dtype), member)


_FROM_LAST: dict[str, tuple[int, Callable[..., Any]]] = {
    "TUPLE1": (1, lambda *items: items),
    "TUPLE2": (2, lambda *items: items),
    "TUPLE3": (3, lambda *items: items),
    "APPEND": (2, lambda elements, item: _extend(elements, [item])),
    "SETITEM": (3, lambda dictionary, *item: _set_items(dictionary, item)),
    "STACK_GLOBAL": (2, lambda module, name: Name(f"{module} {name}")),
    "REDUCE": (2, _called),
    "NEWOBJ": (2, _called),
    "BUILD": (2, lambda instance, state: instance),
    "BINPERSID": (1, _storage),
}
"""The operations that replace a number of items on the stack by what a function makes of them."""
_FROM_MARK: dict[str, Callable[[Any, Sequence[Any]], Any]] = {"APPENDS": _extend, "SETITEMS": _set_items}
"""The operations that put all items since a mark into the container before it."""
