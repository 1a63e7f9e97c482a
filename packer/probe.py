"""The probe: what a folder that nobody has described is, and the configuration that would pack it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from packer.class_table import class_table
from packer.config import Key, Setting, Settings
from packer.engines import TASK_TIMEOUT
from packer.errors import InputError, PackError
from packer.evidence import Reading, known_share, read_by_table, read_without_table
from packer.labels import AUTO, LabelRules
from packer.listing import list_files
from packer.pairing import Pairing, PairingRules, find_pairs
from packer.preset import preset_classes, presets
from packer.proposals import Proposal, propose
from packer.survey import LabelSurvey, Survey, survey
from readers.contract.classes import ClassTable

MOST_PLANES = 3
"""With more classes than an image has channels, planes are most of a pack."""


@dataclass(frozen=True)
class ProbeRequest:
    """What to look at, and how closely; one attribute per option of `packer probe`."""

    raw: Path
    pairing: PairingRules
    classes: str | ClassTable | None = None
    ignore: tuple[str, ...] = ()
    sample: int = 64
    near_duplicates: bool = False
    workers: int = 1
    task_timeout: int = TASK_TIMEOUT


@dataclass(frozen=True)
class PresetMatch:
    """A preset that could be meant: how many pairs its templates find, and which share of the pixels it knows."""

    name: str
    pairs: int
    share: float
    settings: Settings

    @property
    def fits(self) -> bool:
        """Whether it leaves nothing open."""
        return self.pairs > 0 and self.share == 1


@dataclass(frozen=True)
class Probe:
    """What was found, and what is proposed. `why_not` is why nothing pairs, where nothing does."""

    files: int
    pairing: Pairing | None
    why_not: str | None
    proposals: tuple[Proposal, ...]
    survey: Survey | None
    reading: Reading | None
    presets: tuple[PresetMatch, ...]
    settings: Settings
    """The configuration that is proposed."""
    doubts: tuple[str, ...]
    """What the user must decide before it is a good one."""


def probe(request: ProbeRequest, keys: Mapping[str, Key]) -> Probe:
    """Look at a folder. `keys` are those that a configuration may have."""
    files = list_files(request.raw)
    proposals = tuple(propose(files))
    pairing, rules, why_not = _pairing(request, proposals)
    if pairing is None:
        return Probe(len(files), None, why_not, proposals, None, None, (), {}, ())
    seen = survey(
        pairing.pairs, request.raw, request.sample, request.workers, request.task_timeout, request.near_duplicates
    )
    table = class_table(request.raw, request.classes, request.ignore)
    matches = tuple(_matches(request.raw, seen.labels, keys)) if table is None else ()
    reading = read_by_table(seen.labels, table, _source(request)) if table else read_without_table(seen.labels)
    settings, doubts = _proposed(request, rules, pairing, seen, reading, matches)
    return Probe(len(files), pairing, None, proposals, seen, reading, matches, settings, tuple(doubts))


def _pairing(request: ProbeRequest, proposals: Sequence[Proposal]) -> tuple[Pairing | None, PairingRules, str | None]:
    """The pairs by a layout or as the user says, else by the likeliest templates, and how they were found."""
    rules = replace(request.pairing, missing="skip")
    try:
        return find_pairs(request.raw, rules), rules, None
    except InputError as error:
        why_not = str(error)
    if request.pairing == PairingRules():
        for one in proposals:
            rules = PairingRules(one.image, one.label, missing="skip")
            try:
                return find_pairs(request.raw, rules), rules, None
            except InputError:
                continue
    return None, rules, why_not


def _source(request: ProbeRequest) -> str:
    return "--classes" if request.classes is not None else "the class table of the folder"


def _matches(raw: Path, labels: LabelSurvey, keys: Mapping[str, Key]) -> Iterator[PresetMatch]:
    """The presets that pair something here and know some of it."""
    for preset in presets():
        settings = preset.settings(keys)
        classes, rules = preset_classes(settings), _label_rules(settings)
        found = _pairs_by(raw, settings)
        if classes is not None and found:
            share = known_share(labels, classes, rules)
            if share > 0:
                yield PresetMatch(preset.name, found, share, settings)


def _pairs_by(raw: Path, settings: Settings) -> int:
    """How many pairs the templates of a preset find; none where it has no templates, which would fit anything."""
    image, label, lists = (
        value if isinstance(value := settings.get(name), str) else None for name in ("image", "label", "lists")
    )
    if image is None:
        return 0
    try:
        return len(find_pairs(raw, PairingRules(image, label, lists, missing="skip")).pairs)
    except PackError:
        return 0


def _label_rules(settings: Settings) -> LabelRules:
    threshold = settings.get("threshold")
    return LabelRules(
        str(settings.get("label-codec", AUTO)),
        threshold=int(threshold) if isinstance(threshold, str) else None,
        divisor=int(str(settings.get("divisor", 1000))),
    )


def _proposed(
    request: ProbeRequest,
    rules: PairingRules,
    pairing: Pairing,
    seen: Survey,
    reading: Reading,
    matches: Sequence[PresetMatch],
) -> tuple[Settings, list[str]]:
    """The configuration, and what it leaves open."""
    fitting = [match for match in matches if match.fits]
    settings: dict[str, Setting] = {}
    doubts: list[str] = []
    if len(fitting) == 1:
        settings["preset"] = fitting[0].name
        classes = preset_classes(fitting[0].settings)
    else:
        settings.update(_pairing_settings(rules, pairing))
        settings.update(_label_settings(request, reading))
        doubts += reading.doubts
        classes = reading.classes
    if len(fitting) > 1:
        doubts.insert(0, f"several presets fit, --preset {' or '.join(match.name for match in fitting)}")
    if pairing.missing:
        settings["missing"] = "skip"
        doubts.append(f'{len(pairing.missing)} files have no partner and are left out by missing = "skip"')
    if classes is not None and len(classes) > MOST_PLANES:
        settings["labels"] = "index"
    if len(seen.sizes) > 1:
        settings["size"] = "native"
        doubts.append('pictures have several sizes: kept as they are; or choose size = "512x512" and fit')
    doubts += _image_doubts(seen, settings)
    return settings, doubts


def _pairing_settings(rules: PairingRules, pairing: Pairing) -> Iterator[tuple[str, Setting]]:
    """What finds these pairs again; a layout that is known needs no words, but they do no harm."""
    if rules.pairs is not None:
        yield "pairs", str(rules.pairs.absolute())
    elif rules.image is not None and rules.label is not None:
        yield from (("image", rules.image), ("label", rules.label))
    if rules.lists is not None:
        yield "lists", rules.lists
    if rules.split is None and len({pair.split for pair in pairing.pairs}) == 1:
        yield "split", "80/10/10"


def _label_settings(request: ProbeRequest, reading: Reading) -> Iterator[tuple[str, Setting]]:
    rules = reading.rules
    yield "label-codec", rules.codec
    if rules.threshold is not None:
        yield "threshold", str(rules.threshold)
    if rules.codec == "instance":
        yield "divisor", str(rules.divisor)
    if rules.unknown != "error":
        yield "unknown", rules.unknown
    if reading.classes is None or rules.codec == "binary":
        return
    if request.classes is None and request.ignore == ():
        yield from _ignored(reading.classes)
        yield "classes", reading.classes
    elif isinstance(request.classes, str):
        yield "classes", request.classes
    if request.ignore:
        yield "ignore", list(request.ignore)


def _ignored(classes: ClassTable) -> Iterator[tuple[str, Setting]]:
    colours = [f"#{bytes(colour).hex()}" for colour in classes.ignored_colours]
    if classes.ignored_values or colours:
        yield "ignore", [*map(str, classes.ignored_values), *colours]


def _image_doubts(seen: Survey, settings: dict[str, Setting]) -> Iterator[str]:
    """Deep images are scaled on request only, so the proposal makes the request and says so."""
    if seen.deepest == 0:
        settings["image-range"] = "0,1"
        yield "float images: image-range says which numbers become 0 and 1; 0,1 is a guess"
    elif seen.deepest > 8:
        settings["image-range"] = "0,65535"
        yield "16-bit images: image-range says which numbers become 0 and 1; sensors often use less than 65535"
    if any("alpha" in kind for kind in seen.images):
        yield 'images have an alpha channel: if pixels are transparent, alpha = "drop" keeps their stored colours'
