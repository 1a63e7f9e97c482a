"""Functions of the user: their way to a worker process, and the words for their errors."""

from __future__ import annotations

import base64
import json
import pickle
import re
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from threading import RLock
from typing import Any

from packer.errors import BadPair, EngineError, UsageError

FUNCTIONS = "functions"
"""The key in the text of a source that calls functions of the user."""
ONE_AT_A_TIME = RLock()
"""Held while a function of the user runs: it need not know that a worker has threads."""
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_MOST_WORDS = 200


def to_text(functions: Sequence[Callable[[Any], Any] | None]) -> str:
    """Return functions as a text for a worker process, which imports the modules that they are in.

    Functions at the top level of a module are named, others are pickled. No worker has the main module of this program,
    nor functions within functions. Only cloudpickle sends their code.
    """
    names = [None if function is None else _name(function) for function in functions]
    if "" not in names:
        return json.dumps(names)
    try:
        data = pickle.dumps(functions)
        reason = "it is in __main__, which workers do not run" if b"__main__" in data else ""
    except Exception as error:  # noqa: BLE001 - objects of the user decide what pickling raises
        data, reason = b"", words_of(error)
    if reason:
        data = _with_code(functions, reason)
    return base64.b64encode(data).decode()


def _name(function: Callable[[Any], Any]) -> str:
    """Return `module:function` of a function at the top level of a module, an empty text of any other."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    named = getattr(sys.modules.get(str(module)), str(name), None)
    return f"{module}:{name}" if named is function and module != "__main__" else ""


def is_named(text: str) -> bool:
    """Return whether a text names functions: nothing of it is unpickled."""
    return text.startswith("[")


def _named(text: str) -> list[Callable[[Any], Any] | None]:
    """Return the functions with these names."""
    functions: list[Callable[[Any], Any] | None] = []
    for name in json.loads(text):
        module, _, function = str(name).partition(":")
        functions.append(None if name is None else getattr(import_module(module), function))
    return functions


def _with_code(functions: object, reason: str) -> bytes:
    try:
        dumps: Callable[[object], bytes] = import_module("cloudpickle").dumps
    except ImportError:
        raise UsageError(
            f"load cannot be sent to the worker processes ({reason}); put it into a module that can be imported, "
            "at its top level, or install cloudpickle, which sends code: pip install 'segpack[callables]'"
        ) from None
    try:
        return dumps(functions)
    except Exception as error:
        raise UsageError(f"load cannot be sent to the worker processes ({words_of(error)})") from error


def from_text(text: str) -> Any:
    """Return the functions, in a worker. A pickled text came through a pipe from the process that started this one."""
    try:
        if is_named(text):
            return _named(text)
        return pickle.loads(base64.b64decode(text))  # noqa: S301 - see above
    except Exception as error:
        raise EngineError(f"load cannot be opened in a worker process: {words_of(error)}") from error


def call(name: str, function: Callable[[Any], Any], argument: object) -> Any:
    """Call a function of the user. Raise BadPair if it raises, with words that are the same in each run."""
    try:
        return function(argument)
    except (BadPair, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        raise BadPair(f"{name}() raised {words_of(error)}") from error


def words_of(error: BaseException) -> str:
    """Return the type of an error and the first line of its message."""
    try:
        message = str(error).strip().partition("\n")[0]
    except Exception:  # noqa: BLE001 - the error's class is the user's
        message = ""
    return f"{type(error).__name__}{message and ': '}{plain(message)}"


def plain(text: str) -> str:
    """Return a text without addresses in memory, which differ from run to run, and without control characters."""
    text = _CONTROL.sub("?", _ADDRESS.sub("0x...", text))
    return text if len(text) <= _MOST_WORDS else f"{text[:_MOST_WORDS]}..."
