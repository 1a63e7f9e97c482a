"""The survey: what the files of a folder are and hold, as far as headers and a sample of the pixels tell."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.audit import palette_entries, sample
from packer.errors import BadPair
from packer.looks import look
from packer.lookup import colour_codes
from packer.pairing import Pair
from packer.pictures.decode import decode_image, decode_label
from packer.pictures.header import Header
from packer.pictures.kinds import read_header
from packer.pictures.rules import ImageRules
from packer.rows import load_picture, naming, open_picture
from readers.contract.tiles import Size

THREADS = 16
ANY_IMAGE = ImageRules(alpha="drop")
MOST_COLOURS = 4096
"""Of which counts are kept: beyond it, labels are photographs or blurred."""


@dataclass
class LabelSurvey:
    """What the labels that were looked into hold."""

    looked_into: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    values: Counter[int] = field(default_factory=Counter)
    """Pixels by number: of gray labels, and of palette labels by index."""
    colours: Counter[int] = field(default_factory=Counter)
    """Pixels by colour code: of RGB labels, and of palette labels by colour."""
    places: dict[int, set[int]] = field(default_factory=dict)
    """The indices that each colour of a palette has."""

    @property
    def moving(self) -> list[int]:
        """Colours that are one index in one palette and another in another."""
        return sorted(code for code, indices in self.places.items() if len(indices) > 1)


@dataclass(frozen=True)
class Survey:
    """The facts of a folder's pairs."""

    sizes: Counter[Size]
    image_kinds: Counter[str]
    labels: LabelSurvey
    bad: tuple[str, ...]
    copies: tuple[tuple[str, ...], ...]
    """Images whose files are the same byte for byte, named with their split."""
    looks: tuple[tuple[Pair, str], ...]
    """How the images that were looked into look."""


def survey(pairs: Sequence[Pair], raw: Path, most: int) -> Survey:
    """Read every header, and the pixels of about `most` pairs."""
    bad: list[str] = []
    sizes: Counter[Size] = Counter()
    image_kinds: Counter[str] = Counter()
    labels = LabelSurvey()
    with ThreadPoolExecutor(THREADS) as pool:
        for verdict in pool.map(lambda pair: _headers(pair, raw), pairs):
            if isinstance(verdict, str):
                bad.append(verdict)
                continue
            image, label = verdict
            sizes[image.size] += 1
            image_kinds[kind_name(image)] += 1
            labels.kinds[kind_name(label)] += 1
    looks = []
    for place in sample(pairs, most):
        try:
            _look_into_label(labels, pairs[place], raw)
            looks.append((pairs[place], _look_at_image(pairs[place], raw)))
        except BadPair as verdict:
            bad.append(str(verdict))
    return Survey(sizes, image_kinds, labels, tuple(dict.fromkeys(bad)), _copies(pairs, raw), tuple(looks))


def kind_name(header: Header) -> str:
    """`png RGB 8 bits`, as people say it."""
    colours = {1: "gray or palette", 2: "gray with alpha", 3: "RGB", 4: "RGB with alpha"}
    turned = "" if header.orientation == 1 else ", turned by EXIF"
    kind = "float" if header.is_float else "bits"
    return f"{header.kind} {colours.get(header.channels, f'{header.channels} channels')} {header.depth} {kind}{turned}"


def _headers(pair: Pair, raw: Path) -> tuple[Header, Header] | str:
    try:
        headers = []
        for path in (pair.image, pair.label):
            with naming(path), open_picture(raw / path) as file:
                headers.append(read_header(file))
    except BadPair as verdict:
        return str(verdict)
    if headers[0].size != headers[1].size:
        shown = ["x".join(map(str, header.size)) for header in headers]
        return f"{pair.image} is {shown[0]}, its label {pair.label} is {shown[1]} (height x width)"
    return headers[0], headers[1]


def _look_into_label(labels: LabelSurvey, pair: Pair, raw: Path) -> None:
    with naming(pair.label):
        data = load_picture(raw / pair.label)
        numbers = _gray(decode_label(data, as_index=True, lossy=True))
        shown = decode_label(data, as_index=False, lossy=True)
        entries = palette_entries(data)
    labels.looked_into += 1
    if numbers.ndim == 2:
        _count(labels.values, numbers)
    if shown.ndim == 3 and _gray(shown).ndim == 3:
        _count(labels.colours, colour_codes(shown))
    for index, code in entries.items():
        labels.places.setdefault(code, set()).add(index)


def _look_at_image(pair: Pair, raw: Path) -> str:
    with naming(pair.image):
        data = load_picture(raw / pair.image)
        with open_picture(raw / pair.image) as file:
            header = read_header(file)
        deep = header.depth > 8 or header.is_float
        rules = ImageRules((0.0, 65535.0), "drop") if deep else ANY_IMAGE
        pixels = decode_image(data, rules)
    digest = int.from_bytes(hashlib.blake2b(np.ascontiguousarray(pixels).data, digest_size=4).digest(), "big")
    return look(digest, pixels)


def _gray(pixels: NDArray[Any]) -> NDArray[Any]:
    """(H,W) where all three channels are the same."""
    if pixels.ndim == 3 and pixels.shape[2] == 3:
        if (pixels[..., 0] == pixels[..., 1]).all() and (pixels[..., 0] == pixels[..., 2]).all():
            return pixels[..., 0]
    return pixels


def _count(counts: Counter[int], numbers: NDArray[Any]) -> None:
    found, pixels = np.unique(numbers, return_counts=True)
    if len(counts) < MOST_COLOURS:
        counts.update(dict(zip(found.tolist()[:MOST_COLOURS], pixels.tolist(), strict=False)))


def _copies(pairs: Sequence[Pair], raw: Path) -> tuple[tuple[str, ...], ...]:
    """Only files of one size are read, so this is cheap where nothing is a copy."""
    return tuple(
        tuple(f"{pair.split}/{pair.key}" for pair in group)
        for same_size in _groups(pairs, lambda pair: _size(raw / pair.image))
        for group in _groups(same_size, lambda pair: _digest(raw / pair.image))
    )


def _groups(pairs: Iterable[Pair], key: Any) -> Iterator[list[Pair]]:
    groups: dict[object, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(key(pair), []).append(pair)
    return (group for value, group in groups.items() if value is not None and len(group) > 1)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _digest(path: Path) -> bytes | None:
    try:
        return hashlib.sha256(load_picture(path)).digest()
    except (OSError, BadPair):
        return None
