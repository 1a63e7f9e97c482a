"""Checksums: a receipt is checked against the shard table, and the files of its shard against the receipt."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

from readers.contract.errors import DamagedError
from readers.contract.files import blake3_of, plain_file
from readers.contract.receipt import SUFFIX, Receipt
from readers.formats.column import damage_at

MOST_RECEIPT_BYTES = 1 << 30
"""A receipt has a few hundred bytes for each row of one shard."""


def read_receipt(root: Path, stem: Path, digest: str) -> Receipt:
    """Read the receipt of a shard, and check that its SHA-256 is `digest`, the one in the shard table."""
    path = stem.with_name(stem.name + SUFFIX)
    with damage_at(path):
        size = plain_file(root, path).stat().st_size
        if size > MOST_RECEIPT_BYTES:
            raise DamagedError(f"{path}: is over the limit of {MOST_RECEIPT_BYTES} bytes")
        with path.open("rb") as file:
            data = file.read(size)  # reading allocates the size that is passed, however short the file
    return parse_receipt(data, digest, path)


def parse_receipt(data: bytes, digest: str, path: object) -> Receipt:
    """Return the receipt that these bytes are, if `digest` is their SHA-256."""
    if hashlib.sha256(data).hexdigest() != digest:
        raise DamagedError(f"{path}: its SHA-256 is not the one in the shard table")
    try:
        return Receipt.from_text(data.decode(), path)
    except UnicodeDecodeError as error:
        raise DamagedError(f"{path}: cannot be opened ({error})") from error


def damaged_files(root: Path, stem: Path, receipt: Receipt) -> Iterator[tuple[Path, str]]:
    """Yield each damaged file of a shard, and a message that names it."""
    for file in receipt.files:
        path = stem.with_name(stem.name + file.suffix)
        try:
            with damage_at(path):
                size = plain_file(root, path).stat().st_size
                if size != file.bytes:
                    yield path, f"{path}: has {size} bytes, expected {file.bytes} as in its receipt"
                elif blake3_of(path) != file.blake3:
                    yield path, f"{path}: its BLAKE3 is not the one in its receipt"
        except DamagedError as error:
            yield path, str(error)


def check_files(root: Path, stem: Path, receipt: Receipt, read: Collection[Path]) -> None:
    """Refuse a shard if any of the files that are read differs from its receipt."""
    files = tuple(file for file in receipt.files if stem.with_name(stem.name + file.suffix) in read)
    problems = [message for _, message in damaged_files(root, stem, replace(receipt, files=files))]
    if problems:
        raise DamagedError("; ".join(problems))
