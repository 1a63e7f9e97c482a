"""`ImageHashes`: the hashes of all images of a data set in one array, 12 bytes each. `find_same`, `find_near`: compare
them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from readers.contract.receipt import FLAT
from readers.contract.receipt_facts import HASH, AllReceipts

TOGETHER = 1 << 20
"""Images that are looked up at once."""
NEAR_BITS = 3
"""Two pictures are nearly the same if at most this many of the 64 bits of their difference hashes differ."""
MOST_TOGETHER = 256
"""Hashes that share 16 bits are compared pair by pair, except in larger groups: dark pictures have similar hashes."""


class HashedImage(NamedTuple):
    """An image and its `image_hash`."""

    split: str
    key: str
    hash: str

    @property
    def name(self) -> str:
        return f"{self.split}/{self.key}"


@dataclass(frozen=True)
class ImageHashes:
    """The hashes of images in order. The images of a shard follow each other."""

    parts: Sequence[NDArray[Any]]
    """The hash of each image, of the dtype HASH, in arrays one after the other."""
    flat: NDArray[np.int64]
    """The images of one colour."""
    starts: NDArray[np.int64]
    """The first image of each shard."""
    splits: Sequence[str]
    """The split of each shard."""
    keys: Callable[[int], Sequence[str]]
    """Returns the keys of the images of a shard."""

    @classmethod
    def of(cls, images: Sequence[HashedImage]) -> ImageHashes:
        """Return the hashes of a few images, each in a shard of its own."""
        flat = [index for index, image in enumerate(images) if image.hash.endswith(FLAT)]
        digits = "".join(image.hash.replace(FLAT, "0" * 16) for image in images)
        hashes, splits = np.frombuffer(bytes.fromhex(digits), HASH), [image.split for image in images]
        return cls(
            [hashes], np.array(flat, np.int64), np.arange(len(images)), splits, lambda index: [images[index].key]
        )

    @classmethod
    def of_receipts(cls, receipts: AllReceipts, keys: Callable[[int], Iterable[str]]) -> ImageHashes:
        """Return the hashes of all images of a pack. `keys` returns the keys of the rows and rejects of a shard."""
        numbers, shards = list(receipts), list(receipts.values())

        def kept(index: int) -> list[str]:
            rejected = {reject.key for reject in shards[index].rejects}
            return [key for key in keys(numbers[index]) if key not in rejected]

        ends = np.cumsum([0, *(len(facts.hashes) for facts in shards)])
        flat = [facts.flat + start for facts, start in zip(shards, ends, strict=False)]
        return cls(
            [np.empty(0, HASH), *(facts.hashes for facts in shards)],
            np.concatenate([np.empty(0, np.int64), *flat]),
            ends[:-1],
            [facts.split for facts in shards],
            kept,
        )

    def numbers(self, name: str) -> NDArray[Any]:
        """Return a part of all hashes as numbers."""
        dtype = HASH[name].newbyteorder("=")
        return np.concatenate([part[name].astype(dtype) for part in self.parts])

    def of_images(self, images: NDArray[np.int64]) -> NDArray[Any]:
        """Return the hashes of some images, which ascend."""
        ends = np.cumsum([len(part) for part in self.parts])
        bounds = images.searchsorted(ends)
        some = zip(self.parts, ends, [0, *bounds[:-1]], bounds, strict=True)
        return np.concatenate([part[images[first:last] - (end - len(part))] for part, end, first, last in some])

    def split(self, image: int) -> str:
        return self.splits[int(np.searchsorted(self.starts, image, "right")) - 1]

    def images(self, numbers: Iterable[int]) -> dict[int, tuple[str, str]]:
        """Return split and key of these images. The keys of each shard are asked for once."""
        ordered = sorted(set(numbers))
        shards = (np.searchsorted(self.starts, ordered, "right") - 1).tolist()
        names: dict[int, tuple[str, str]] = {}
        current, start, keys = -1, 0, list[str]()
        for image, shard in zip(ordered, shards, strict=True):
            if shard != current:
                current, start, keys = shard, int(self.starts[shard]), list(self.keys(shard))
            names[image] = self.splits[shard], keys[image - start]
        return names


def find_same(images: ImageHashes) -> Iterator[list[int]]:
    """Yield groups of images with equal hashes."""
    some = np.setdiff1d(_occurring_again(images.numbers("crc32")), images.flat, assume_unique=True)
    hashes = images.of_images(some)
    crc32, bits = (hashes[name].astype(f"u{size}") for name, size in (("crc32", 4), ("bits", 8)))
    order = np.lexsort((bits, crc32))
    differ = (np.diff(crc32[order]) != 0) | (np.diff(bits[order]) != 0)
    starts = np.flatnonzero(np.append(True, differ))[: len(some)]
    counts = np.diff(starts, append=len(some))
    for start, count in zip(starts[counts > 1].tolist(), counts[counts > 1].tolist(), strict=True):
        yield some[order[start : start + count]].tolist()


def _occurring_again(numbers: NDArray[np.uint32]) -> NDArray[np.intp]:
    """Return the indices of the numbers that occur more than once, without a sorted index of all of them."""
    ordered = np.sort(numbers)
    several = ordered[1:][ordered[1:] == ordered[:-1]]
    again = [np.empty(0, np.intp)]
    for first in range(0, len(numbers) if len(several) else 0, TOGETHER):
        part = numbers[first : first + TOGETHER]
        nearest = np.minimum(np.searchsorted(several, part), len(several) - 1)
        again.append(first + np.flatnonzero(several[nearest] == part))
    return np.concatenate(again)


def find_near(images: ImageHashes) -> list[tuple[int, int]]:
    """Return pairs across splits whose hashes differ in few bits. One of the four parts of 16 bits is then equal."""
    textured = np.delete(np.arange(sum(map(len, images.parts))), images.flat)
    hashes = images.numbers("bits")[textured]
    close_pairs: set[tuple[int, int]] = set()
    for shift in (0, 16, 32, 48):
        parts = ((hashes >> np.uint64(shift)) & np.uint64(0xFFFF)).astype(np.uint16)
        order = np.argsort(parts, kind="stable")
        ends = np.flatnonzero(parts[order][1:] != parts[order][:-1]) + 1
        for group in np.split(order, ends):
            if 1 < len(group) <= MOST_TOGETHER:
                close_pairs |= _close(hashes, group)
    pairs = [(int(textured[a]), int(textured[b])) for a, b in sorted(close_pairs)]
    crc32, bits = images.numbers("crc32"), images.numbers("bits")

    def differ(a: int, b: int) -> bool:
        return bool(crc32[a] != crc32[b] or bits[a] != bits[b])

    return [(a, b) for a, b in pairs if images.split(a) != images.split(b) and differ(a, b)]


def _close(hashes: NDArray[np.uint64], group: NDArray[np.intp]) -> set[tuple[int, int]]:
    """Return the index pairs of a group whose hashes differ in few bits."""
    differing = hashes[group][:, None] ^ hashes[group][None]
    bits = np.unpackbits(differing.view(np.uint8).reshape(len(group), len(group), 8), axis=2).sum(2)
    rows, columns = np.nonzero(np.triu(bits <= NEAR_BITS, 1))
    return {(int(min(group[a], group[b])), int(max(group[a], group[b]))) for a, b in zip(rows, columns, strict=True)}
