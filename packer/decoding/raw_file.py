"""Name a raw file in front of the reason why its pair is bad."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from packer.errors import MOST_FILES, BadFile, BadPair, LostFile, first_of
from readers.contract.regular_files import NotRegularError

SEPARATOR = "\t"
"""Between the paths of a field that has a file for each class or band. No path has a tab: it is a control character."""


@contextmanager
def naming_number(number: int) -> Iterator[None]:
    """Say which of the files of a field is to blame, for `naming`."""
    try:
        yield
    except LostFile:
        raise
    except BadPair as bad:
        raise BadFile(number, str(bad)) from None


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Put a file's name in front of the reason why it is bad. Several paths have the separator between them."""
    try:
        yield
    except BadPair as bad:
        files = path.split(SEPARATOR)
        if isinstance(bad, BadFile) and len(files) > 1:
            raise BadPair(f"{files[bad.number]}: {bad}") from None
        raise bad.because(f"{', '.join(first_of(list(filter(None, files)), MOST_FILES))}: {bad}") from None
    except NotRegularError as error:
        raise LostFile(f"{path}: {error.strerror}") from None
    except OSError as error:
        raise LostFile(f"{path}: cannot be read ({error.strerror})") from error
