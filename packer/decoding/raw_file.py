"""Name a raw file in front of the reason why its pair is bad."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from packer.errors import BadPair
from readers.contract.regular_files import NotRegularError


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Put a file's name in front of the reason why it is bad."""
    try:
        yield
    except BadPair as bad:
        raise BadPair(f"{path}: {bad}") from None
    except NotRegularError as error:
        raise BadPair(f"{path}: {error.strerror}") from None
    except OSError as error:
        raise BadPair(f"{path}: cannot be read ({error.strerror})") from error
