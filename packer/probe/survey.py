"""Survey the pairs of a folder: all headers, and the pixels of a sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from packer.data_checks.find_mistakes import find_mistakes
from packer.data_checks.findings import Findings
from packer.data_checks.image_hashes import HashedImage, ImageHashes
from packer.errors import BadPair
from packer.pairs.pair import Pair
from packer.pixels.choices import CHECK
from packer.plan.check_heads import at_one_place
from packer.plan.palettes import Palettes
from packer.plan.sample import LabelSampler, spread_indices
from packer.probe.image_settings import deepest_of
from packer.shards.inspect import MOST_COUNTS, LabelCounts
from packer.sources.files.folder import FolderSource, refs_of
from readers.contract.fields import IMAGE, LABEL
from readers.contract.receipt_facts import NO_DATA
from readers.contract.tiles import Size

MOST_RARE = 32
"""Pairs of rare file types that are decoded in addition to the sample."""


@dataclass
class LabelSurvey:
    """The file types of all labels, and the values and colours of those in the sample."""

    total: int = 0
    """All labels of the folder."""
    sampled: int = 0
    decoded: int = 0
    """Labels of the sample that could be decoded."""
    rgb: int = 0
    """Decoded labels that have colours only, so that no value can be read from them."""
    kinds: Counter[str] = field(default_factory=Counter)
    lossy: bool = False
    """True if any label has lossy compression, such as JPEG."""
    values: Counter[int] = field(default_factory=Counter)
    """Pixels by value in gray labels, and by index in palette labels."""
    grays: Counter[int] = field(default_factory=Counter)
    """Pixels by value in gray labels only."""
    colours: Counter[int] = field(default_factory=Counter)
    """Pixels by colour code, in RGB labels and in palette labels."""
    palettes: Palettes = field(default_factory=Palettes)
    too_many: bool = False
    """True if a label has more values or colours than are counted."""

    def add(self, path: str, counts: LabelCounts) -> None:
        self.sampled += 1
        self.decoded += bool(counts.values or counts.colours)
        self.rgb += bool(counts.colours and not counts.values)
        self.values.update(counts.values)
        self.grays.update({} if counts.colours else counts.values)
        self.colours.update(counts.colours)
        self.too_many |= max(len(counts.values), len(counts.colours)) >= MOST_COUNTS
        self.palettes.add(path, counts)


@dataclass(frozen=True)
class Survey:
    """Facts about the pairs of a folder."""

    sizes: Counter[Size]
    images: Counter[str]
    deepest: int
    """The most bits per channel of any image; 0 if any image is float."""
    has_bands: bool
    """True if an image has bands that are neither colours nor alpha."""
    labels: LabelSurvey
    bad: Mapping[tuple[str, str], str]
    """The reasons of the pairs that cannot be packed, by split and key."""
    copies: tuple[tuple[str, ...], ...]
    """Groups of images whose files have the same bytes, as `split/key`."""
    findings: Findings
    """Likely mistakes among the images of the sample."""
    sample: tuple[Pair, ...] = ()
    """The pairs that were decoded."""

    @property
    def has_volumes(self) -> bool:
        """True if the rows are volumes."""
        return any(len(size) == 3 for size in self.sizes)


def survey_pairs(folder: FolderSource, sampler: LabelSampler, most: int, near: bool) -> Survey:
    """Read every header, and the pixels of about `most` pairs; of a volume only the pixels of its middle slice."""
    pairs = folder.pairs
    results = [at_one_place(heads, CHECK) for heads in sampler.source.heads(list(folder.rows()))]
    headers = [result for result in results if not isinstance(result, str)]
    sizes: Counter[Size] = Counter(image.size for image, _ in headers)
    kinds = [None if isinstance(result, str) else tuple(map(str, result)) for result in results]
    chosen = _sample(kinds, most)
    sampled = [pairs[index] for index in chosen]
    sample = dict(zip(chosen, sampler.inspect(list(refs_of(sampled)), len(sampled), images=True).values(), strict=True))
    labels = LabelSurvey(
        len(pairs),
        kinds=Counter(str(label) for _, label in headers),
        lossy=any(label.is_lossy for _, label in headers),
    )
    for index, counts in sample.items():
        labels.add(pairs[index].label, counts)
    reasons = {index: counts.bad for index, counts in sample.items()}
    reasons |= {index: result for index, result in enumerate(results) if isinstance(result, str)}
    bad = {pairs[index][:2]: reason for index, reason in sorted(reasons.items()) if reason is not None}
    images = [
        HashedImage(pairs[index].split, pairs[index].key, counts.look)
        for index, counts in sample.items()
        if counts.look
    ]
    fields = ((IMAGE, {image.no_data for image, _ in headers}), (LABEL, {label.no_data for _, label in headers}))
    no_data = [NO_DATA.format(name, value) for name, marks in fields for value in marks - {""}]
    return Survey(
        sizes,
        Counter(str(image) for image, _ in headers),
        deepest_of(image.plain_depth for image, _ in headers),
        any(image.extra for image, _ in headers),
        labels,
        bad,
        tuple(_copies(pairs, folder)),
        find_mistakes(ImageHashes.of(images), sizes, near=near, counted=no_data),
        tuple(sampled),
    )


def _sample(kinds: Sequence[tuple[str, ...] | None], most: int) -> list[int]:
    """Choose about `most` pairs, evenly spread, and the first pairs of all file types that these do not show.

    `kinds` has the file types of each pair, or None if it is bad.
    """
    chosen = spread_indices(len(kinds), most)
    rare = {kind for kind in kinds if kind is not None} - {kinds[index] for index in chosen}
    firsts = [kinds.index(kind) for kind in rare]
    return sorted({*chosen, *sorted(firsts)[:MOST_RARE]})


def _copies(pairs: Sequence[Pair], source: FolderSource) -> Iterator[tuple[str, ...]]:
    """Find equal files. Only files of equal length are read, so this is cheap if there are no copies."""
    for same_length in _groups(pairs, lambda pair: _length(source, pair.image)):
        for group in _groups(same_length, lambda pair: source.digest_of(pair.image)):
            yield tuple(f"{pair.split}/{pair.key}" for pair in group)


def _length(source: FolderSource, path: str) -> int:
    """Return the length of a regular file. Pipes and empty files are refused: they are bad pairs, not copies."""
    length = source.size_of(path)
    if length == 0:
        raise BadPair("is empty")
    return length


def _groups(pairs: Iterable[Pair], fact: Callable[[Pair], object]) -> Iterator[list[Pair]]:
    """Group pairs by a fact; leave out single pairs and pairs whose fact cannot be read."""
    groups: dict[object, list[Pair]] = {}
    for pair in pairs:
        try:
            groups.setdefault(fact(pair), []).append(pair)
        except (OSError, BadPair):
            continue  # the pair is already in the list of bad pairs
    return (group for group in groups.values() if len(group) > 1)
