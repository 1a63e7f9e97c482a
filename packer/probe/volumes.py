"""Volumes in a folder: pairs of scans, or of TIFFs with many pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from packer.pairs.find import Pairing
from packer.pairs.pair import Pair
from packer.pairs.pairing_rules import PairingRules
from packer.pairs.template import has_channels
from packer.plan.sample import spread_indices
from packer.probe.survey import Survey
from packer.sources.container import Names
from packer.sources.files.folder import FolderSource
from packer.sources.volumes.volume_slices import VolumeSlices
from packer.sources.volumes.whole_volumes import WholeVolumes

VOLUMES = "volumes, for --from"
MOST_TRIED = 16
"""The pairs whose headers show whether TIFFs are volumes."""


def volume_pairs(raw: Path, rules: PairingRules) -> Pairing:
    """Return the pairs of a folder of volumes. A volume without a partner is an error."""
    slices = VolumeSlices.at(raw, Names(rules.image, rules.label))
    image, label = slices.templates
    return Pairing(VOLUMES, tuple(Pair(*name, *paths) for name, paths in slices.volumes.items()), image, label)


def whole_volumes(raw: Path, pairing: Pairing) -> WholeVolumes | None:
    """Return the source of these pairs; None if they are pictures."""
    if pairing.layout != VOLUMES:
        return None
    return WholeVolumes(raw.absolute(), (pairing.image_template, pairing.label_template), {})


def with_volumes(folder: FolderSource) -> FolderSource:
    """Return the folder with the pages of its TIFFs as slices, if so more pairs can be read, and not half otherwise."""
    if any(map(has_channels, folder.templates)):
        return folder  # the files are the bands of pictures
    some = replace(folder, pairs=tuple(folder.pairs[index] for index in spread_indices(len(folder.pairs), MOST_TRIED)))
    pictures, volumes = _good(some), _good(replace(some, volumes=True))
    return replace(folder, volumes=True) if 2 * pictures < len(some.pairs) and pictures < volumes else folder


def _good(folder: FolderSource) -> int:
    """Return the number of pairs with good headers."""
    return sum(not isinstance(heads, str) for heads in folder.heads(list(folder.rows())))


def volume_doubts(survey: Survey, pairing: Pairing) -> Iterator[str]:
    """Yield what the user must decide about rows that are volumes."""
    if pairing.layout == VOLUMES:
        slices = "each slice is a row" if survey.deepest == 8 else "each slice is a row, which needs image-range"
        yield f"volumes = true makes one row of each volume; without it {slices}"
    if survey.deepest != 8:
        yield 'numbers are stored unchanged; image-range = "-160,240" makes -160 to 0 and 240 to 1, for scans of CT'
    if survey.labels.sampled:
        yield "only the middle slice of each label was decoded, so rare classes may be missing"
