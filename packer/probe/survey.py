"""The survey: what the pairs of a folder are and hold, as far as all headers and a sample of the pixels tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from packer.data_checks import Findings, Seen, find
from packer.decoding.header import Header
from packer.decoding.pair_headers import check_same_size, read_pair_headers
from packer.decoding.raw_file import open_picture
from packer.errors import BadPair
from packer.pairs.pair import Pair
from packer.plan.palettes import Palettes
from packer.plan.sample import LabelSampler
from packer.workers.inspect import MOST_COUNTS, LabelCounts
from readers.contract.files import sha256
from readers.contract.tiles import Size

THREADS = 16
"""Headers wait for the disk more than for the processor."""
CHANNELS = {1: "gray", 2: "gray with alpha", 3: "RGB", 4: "RGB with alpha"}


@dataclass
class LabelSurvey:
    """What the labels that were looked into hold."""

    looked_into: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    values: Counter[int] = field(default_factory=Counter)
    """Pixels by number: of gray labels, and of palette labels by index."""
    colours: Counter[int] = field(default_factory=Counter)
    """Pixels by colour code: of RGB labels, and of palette labels by colour."""
    palettes: Palettes = field(default_factory=Palettes)
    too_many: bool = False
    """Whether a label has more colours than were counted."""

    def add(self, path: str, glance: LabelCounts) -> None:
        self.looked_into += 1
        self.values.update(glance.values)
        self.colours.update(glance.colours)
        self.too_many |= max(len(glance.values), len(glance.colours)) >= MOST_COUNTS
        self.palettes.add(path, glance)


@dataclass(frozen=True)
class Survey:
    """The facts of a folder's pairs."""

    sizes: Counter[Size]
    images: Counter[str]
    deepest: int
    """The most bits that a channel of an image has; 0 where there are float images."""
    labels: LabelSurvey
    bad: tuple[str, ...]
    copies: tuple[tuple[str, ...], ...]
    """Images whose files are the same byte for byte, named with their split."""
    findings: Findings
    """Of the images that were looked into."""


def survey(pairs: Sequence[Pair], sampler: LabelSampler, most: int, near: bool) -> Survey:
    """Read every header, and the pixels of about `most` pairs."""
    with ThreadPoolExecutor(THREADS) as pool:
        verdicts = list(pool.map(lambda pair: _headers(pair, sampler.raw), pairs))
    headers = [verdict for verdict in verdicts if not isinstance(verdict, str)]
    sizes = Counter(image.size for image, _ in headers)
    depths = [0 if image.is_float else image.depth for image, _ in headers]
    seen = sampler.inspect(pairs, most, images=True)
    labels = LabelSurvey(kinds=Counter(_kind(label) for _, label in headers))
    for place, glance in seen.items():
        labels.add(pairs[place].label, glance)
    bad = [verdict for verdict in verdicts if isinstance(verdict, str)]
    bad += [glance.bad for glance in seen.values() if glance.bad is not None]
    looks = [Seen(pairs[place].split, pairs[place].key, glance.look) for place, glance in seen.items() if glance.look]
    return Survey(
        sizes,
        Counter(_kind(image) for image, _ in headers),
        0 if 0 in depths else max(depths, default=8),
        labels,
        tuple(dict.fromkeys(bad)),
        tuple(_copies(pairs, sampler.raw)),
        find(looks, sizes, near=near),
    )


def _kind(header: Header) -> str:
    """`png RGB 8 bits`, as people say it."""
    channels = "palette" if header.has_palette else CHANNELS.get(header.channels, f"{header.channels} channels")
    kind = "bits, float" if header.is_float else "bits"
    turned = "" if header.orientation == 1 else ", turned by EXIF"
    return f"{header.kind} {channels}, {header.depth} {kind}{turned}"


def _headers(pair: Pair, raw: Path) -> tuple[Header, Header] | str:
    """The headers of an image and its label, or what is wrong with them."""
    try:
        image, label = read_pair_headers(raw, pair.image, pair.label)
        check_same_size(pair.image, image.size, pair.label, label.size)
    except BadPair as verdict:
        return str(verdict)
    return image, label


def _copies(pairs: Sequence[Pair], raw: Path) -> Iterator[tuple[str, ...]]:
    """Only files of one length are read, so this is cheap where nothing is a copy."""
    for same_length in _groups(pairs, lambda pair: _length(raw / pair.image)):
        for group in _groups(same_length, lambda pair: sha256(raw / pair.image)):
            yield tuple(f"{pair.split}/{pair.key}" for pair in group)


def _length(path: Path) -> int:
    """Of a regular file: others, such as pipes, would be waited for when they are read."""
    with open_picture(path) as file:
        return file.seek(0, 2)


def _groups(pairs: Iterable[Pair], fact: Callable[[Pair], object]) -> Iterator[list[Pair]]:
    """Two or more pairs that share a fact; those of which it cannot be told are left aside."""
    groups: dict[object, list[Pair]] = {}
    for pair in pairs:
        try:
            groups.setdefault(fact(pair), []).append(pair)
        except (OSError, BadPair):
            continue  # it is named as bad already
    return (group for group in groups.values() if len(group) > 1)
