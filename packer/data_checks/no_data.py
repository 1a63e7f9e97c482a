"""A value that files name for pixels without data: GDAL writes it into their headers, and no program here obeys it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from packer.data_checks.findings import NO_DATA, Finding
from readers.contract.receipt_facts import NO_DATA as WORDS

_WORDS = re.compile(WORDS.format(r"(?P<field>.+)", r"(?P<value>\S+)"))


def find_no_data(counted: Iterable[str]) -> Iterator[Finding]:
    """Yield a finding for each field and value in the words of counts."""
    for match in filter(None, map(_WORDS.fullmatch, sorted(set(counted)))):
        yield Finding(NO_DATA, f"{match['field']}={match['value']}")
