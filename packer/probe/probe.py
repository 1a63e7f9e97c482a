"""The probe: what a folder that nobody has described is, and the configuration that would pack it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

from packer.classes.load import load_class_table, read_table
from packer.classes.values import is_values
from packer.config.config import Setting, Settings
from packer.config.options import TASK_TIMEOUT
from packer.errors import InputError
from packer.pairs.files import list_files
from packer.pairs.find import Pairing, PairingRules, find_pairs
from packer.pairs.suggest import Suggestion, suggest_templates
from packer.pixels.label_codec import AS_THE_TABLE_SAYS, BINARY, INSTANCE, LabelRules
from packer.plan.sample import LabelSampler
from packer.probe.guess_labels import Reading, known_share, read_by_table, read_without_table
from packer.probe.match_presets import PresetMatch, matching_presets
from packer.probe.survey import LabelSurvey, Survey, survey
from packer.workers import open_engine
from readers.contract.classes import ClassTable
from readers.contract.manifest import ALL
from readers.machine import usable_cores

TABLE_SUFFIXES = (".csv", ".txt", ".toml", ".json")
TABLE_WORDS = ("class", "label", "colo", "palette", "categor", "objectinfo")
MOST_PLANES = 3
"""With more classes than an image has channels, planes are most of a pack."""
LEAST_TO_SPLIT = 10
GUESSED = "none that is known; these templates, taken from the names, pair most files"


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
class Probe:
    """What was found, and what is proposed. `why_not` is why nothing pairs, where nothing does."""

    files: int
    pairing: Pairing | None
    why_not: str | None
    proposals: tuple[Suggestion, ...]
    survey: Survey | None
    reading: Reading | None
    presets: tuple[PresetMatch, ...]
    settings: Settings
    """The configuration that is proposed."""
    doubts: tuple[str, ...]
    """What the user must decide before it is a good one."""


def probe_folder(
    raw: str | PathLike[str],
    *,
    image: str | None = None,
    label: str | None = None,
    lists: str | None = None,
    pairs: str | PathLike[str] | None = None,
    classes: str | ClassTable | None = None,
    ignore: Sequence[str] = (),
    sample: int = 64,
    near_duplicates: bool = False,
    workers: int | None = None,
    task_timeout: int = TASK_TIMEOUT,
) -> Probe:
    """Inspect a raw folder: its layout, its pairs, what a sample of its labels holds, and a configuration for a build.

    The options are those of `packer probe`.
    """
    rules = PairingRules(image, label, lists, None if pairs is None else Path(pairs))
    cores = workers or usable_cores()
    return probe(ProbeRequest(Path(raw), rules, classes, tuple(ignore), sample, near_duplicates, cores, task_timeout))


def probe(request: ProbeRequest) -> Probe:
    """Inspect a folder."""
    files = list_files(request.raw)
    proposals = tuple(suggest_templates(files))
    pairing, rules, why_not = _pairing(request, proposals)
    if pairing is None:
        return Probe(len(files), None, why_not, proposals, None, None, (), {}, ())
    with open_engine(request.workers, request.task_timeout) as engine:
        sampler = LabelSampler(request.raw, engine)
        seen = survey(pairing.pairs, sampler, request.sample, request.near_duplicates)
    matches = tuple(matching_presets(request.raw, seen.labels))
    reading, said = _reading(request, files, seen.labels, matches)
    settings, doubts = _proposed(rules, pairing, seen, reading, said)
    return Probe(len(files), pairing, None, proposals, seen, reading, matches, settings, tuple(doubts))


def _pairing(request: ProbeRequest, proposals: Sequence[Suggestion]) -> tuple[Pairing | None, PairingRules, str | None]:
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
                return replace(find_pairs(request.raw, rules), layout=GUESSED), rules, None
            except InputError:
                continue
    return None, rules, why_not


def _reading(
    request: ProbeRequest, files: Sequence[str], labels: LabelSurvey, matches: Sequence[PresetMatch]
) -> tuple[Reading, Settings]:
    """How the labels are read, and what a configuration says for it: by what is given, what lies there, what fits."""
    raw, given = request.raw, load_class_table(request.raw, request.classes, request.ignore)
    if given is not None:
        source = "--classes" if request.classes is not None else "the class table of the folder"
        return read_by_table(labels, given, source), _given(request)
    exact = [match for match in matches if match.exact]
    if len(exact) == 1 and exact[0].pairs:
        return _by_preset(labels, exact[0]), {"preset": exact[0].name}
    for path, table in _tables(raw, files):
        if known_share(labels, table, AS_THE_TABLE_SAYS) == 1:
            reading = read_by_table(labels, table, path)
            return reading, {**_codec(reading.rules), "classes": str((raw / path).absolute())}
    reading = _by_preset(labels, exact[0]) if exact else read_without_table(labels)
    return reading, {**_codec(reading.rules), **_classes(reading)}


def _by_preset(labels: LabelSurvey, match: PresetMatch) -> Reading:
    return read_by_table(labels, match.classes, f"preset {match.name}", match.rules)


def _tables(raw: Path, files: Sequence[str]) -> Iterator[tuple[str, ClassTable]]:
    """The files that could be class tables, and can be read as such."""
    for path in files:
        name = path.rpartition("/")[2].casefold()
        if name.endswith(TABLE_SUFFIXES) and any(word in name for word in TABLE_WORDS):
            try:
                yield path, read_table(raw / path)
            except InputError:
                continue


def _proposed(
    rules: PairingRules, pairing: Pairing, seen: Survey, reading: Reading, said: Settings
) -> tuple[Settings, list[str]]:
    """The configuration, and what it leaves open."""
    settings: dict[str, Setting] = {**({} if "preset" in said else dict(_pairing_settings(rules, pairing))), **said}
    doubts = list(reading.doubts)
    if pairing.missing:
        settings["missing"] = "skip"
        doubts.append(f'{len(pairing.missing)} files have no partner: missing = "skip" leaves them out')
    if reading.classes is not None and len(reading.classes) > MOST_PLANES:
        settings["labels"] = "index"
    if len(seen.sizes) > 1:
        settings["size"] = "native"
        doubts.append(
            'pictures have several sizes, which size = "native" keeps; for one size, say size = "512x512" and a fit'
        )
    doubts += _image_doubts(seen, settings)
    return settings, doubts


def _pairing_settings(rules: PairingRules, pairing: Pairing) -> Iterator[tuple[str, Setting]]:
    """What finds these pairs again; a layout that is known needs no words."""
    if rules.pairs is not None:
        yield "pairs", str(rules.pairs.absolute())
    if rules.image is not None and rules.label is not None:
        yield from (("image", rules.image), ("label", rules.label))
    if rules.lists is not None:
        yield "lists", rules.lists
    if {pair.split for pair in pairing.pairs} == {ALL} and len(pairing.pairs) >= LEAST_TO_SPLIT:
        yield "split", "80/10/10"


def _given(request: ProbeRequest) -> Settings:
    """What the user said of the classes, as a configuration says it."""
    given: dict[str, Setting] = {}
    if isinstance(request.classes, str):
        named = is_values(request.classes)
        given["classes"] = request.classes if named else str(Path(request.classes).absolute())
    if request.ignore:
        given["ignore"] = list(request.ignore)
    return given


def _codec(rules: LabelRules) -> Settings:
    said: dict[str, Setting] = {"label-codec": rules.codec}
    if rules.threshold is not None:
        said["threshold"] = str(rules.threshold)
    if rules.codec == INSTANCE:
        said["divisor"] = str(rules.divisor)
    if rules.unknown != "error":
        said["unknown"] = rules.unknown
    return said


def _classes(reading: Reading) -> Settings:
    """The classes and what is ignored, written out. Binary labels have the usual two."""
    table = reading.classes
    if table is None or reading.rules.codec == BINARY:
        return {}
    ignored = [*map(str, table.ignored_values), *(f"#{bytes(colour).hex()}" for colour in table.ignored_colours)]
    return {**({"ignore": ignored} if ignored else {}), "classes": ClassTable(table.classes)}


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
