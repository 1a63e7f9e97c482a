"""Libraries that only some packs need."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from readers.contract.errors import ReadError


def library(name: str, what: str) -> ModuleType:
    """Import a library, whose package has the same name. Say what needs it where it is missing."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise ReadError(f"{what} need {name}: pip install {name}") from error
