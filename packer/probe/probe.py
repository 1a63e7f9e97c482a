"""Inspect an unknown raw folder and propose a configuration that packs it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from packer.classes.ignore import with_ignored
from packer.classes.load import PROPOSED_TABLES, load_class_table, read_table
from packer.classes.values import is_values
from packer.config.config import DECIDE, Setting, Settings
from packer.config.preset_evidence import likely_presets
from packer.data_checks.findings import NO_DATA
from packer.errors import InputError, SettingsError, counted, first_of
from packer.pairs.files import find_files, list_files
from packer.pairs.find import Pairing, find_pairs
from packer.pairs.pairing_rules import PairingRules
from packer.pairs.suggest import Suggestion
from packer.pairs.suggest_channels import suggest
from packer.pixels.label_rules import AS_THE_TABLE_SAYS, BINARY, INDEX, INSTANCE, LabelRules
from packer.plan.sample import open_sampler
from packer.probe.annotated import LEAST_TO_SPLIT, MOST_PLANES, AnnotatedProposal, propose_annotated
from packer.probe.coverage import coverage_questions, list_questions
from packer.probe.further_fields import FurtherField, further_fields
from packer.probe.guess_labels import LabelReading, read_by_table, read_without_table
from packer.probe.image_settings import image_doubts
from packer.probe.label_pixels import known_share
from packer.probe.match_presets import PresetMatch, matching_presets
from packer.probe.other_pairs import rival_questions
from packer.probe.request import ProbeRequest
from packer.probe.survey import LabelSurvey, Survey, survey_pairs
from packer.probe.trainers import Trainer, trainers_of
from packer.probe.trial import Trial, try_settings
from packer.probe.volumes import VOLUMES, volume_doubts, volume_pairs, whole_volumes, with_volumes
from packer.sources.annotated.exports import with_exports
from packer.sources.files.folder import FolderSource
from packer.sources.files.objects import ObjectsSource
from packer.sources.files.slides import check_readable, is_slide
from packer.sources.volumes.data_set_file import NAME as DATA_SET_FILE
from packer.sources.volumes.data_set_file import DataSetFile
from packer.sources.volumes.volume_slices import VolumeSlices
from readers.contract.classes import ClassTable
from readers.contract.fields import LABEL
from readers.contract.manifest import ALL
from readers.stores.open_store import url_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from packer.probe.request import ProbeOptions

TABLE_SUFFIXES = (".csv", ".txt", ".toml", ".json")
TABLE_FILES = (*PROPOSED_TABLES, DATA_SET_FILE)
USUALLY_IGNORED = "255"
TABLE_WORDS = ("class", "label", "colo", "palette", "categor", "objectinfo")
MOST_CANDIDATES = 6
GUESSED = "unknown; these templates, suggested by the file names, pair most files"


@dataclass(frozen=True)
class ProbeResult:
    """The result of a probe. Without pairs, `why_not` is the reason and there are only suggestions of templates."""

    files: int
    pairing: Pairing | None
    why_not: str | None
    proposals: tuple[Suggestion, ...]
    survey: Survey | None
    reading: LabelReading | None
    presets: tuple[PresetMatch, ...]
    settings: Settings
    """The proposed configuration."""
    doubts: tuple[str, ...]
    """Questions that the user must decide."""
    further: tuple[FurtherField, ...] = ()
    """Files next to the pairs that could be further fields."""
    annotated: AnnotatedProposal | None = None
    """Annotations of a labelling tool, from which labels are painted. Then there are no pairs with label pictures."""
    trainers: tuple[Trainer, ...] = ()
    """The trainers that read such folders, and the lines with which they read the pack."""


def probe_folder(raw: str | PathLike[str], **options: Unpack[ProbeOptions]) -> ProbeResult:
    """Inspect a raw folder: its layout, its pairs, what a sample of its labels holds, and a configuration for a build.

    The options are the same as of `packer probe`.
    """
    if (url := url_of(raw)) is None:
        result = _probe(ProbeRequest.from_options(Path(raw), options))
        return replace(result, trainers=trainers_of(Path(raw), result))
    objects = ObjectsSource.at(url)
    with objects.named():
        return _probe(replace(ProbeRequest.from_options(objects.raw, options), objects=objects))


def _probe(request: ProbeRequest) -> ProbeResult:
    listed = request.objects.files if request.objects else None
    files = list_files(request.raw) if listed is None else listed.paths
    try:
        annotated = propose_annotated(request)
    except InputError as error:
        return ProbeResult(len(files), None, str(error), (), None, None, (), {}, ())
    if annotated is not None:
        proposed = (annotated.settings, annotated.doubts)
        return ProbeResult(len(files), None, None, (), None, None, (), *proposed, annotated=annotated)
    proposals = tuple(suggest(files))
    pairing, rules, why_not = _pairing(request, proposals)
    if pairing is None:
        return ProbeResult(len(files), None, why_not, proposals, None, None, (), {}, ())
    count, others = len(files), {path for pair in pairing.pairs for path in pair.channels[1:]}
    files = [path for path in files if path not in others]  # the first file stands for a picture
    slides = any(is_slide(pair.image) for pair in pairing.pairs)
    if slides:
        check_readable(request.objects is not None)
    templates = (pairing.image_template, pairing.label_template)
    folder = replace(
        request.objects or FolderSource(request.raw), pairs=pairing.pairs, templates=templates, slides=slides
    )
    source = whole_volumes(request.raw, pairing) or with_volumes(folder)
    with open_sampler(source, request.workers, request.task_timeout) as sampler:
        survey = survey_pairs(folder, sampler, request.sample, request.near_duplicates)
        matches = tuple(matching_presets(request.raw, survey.labels, listed))
        own_table = DataSetFile.of(request.raw).classes if pairing.layout == VOLUMES else None
        reading, settings = _reading(request, files, survey, matches, own_table)
        settings, doubts = _propose(rules, pairing, survey, reading, settings)
        named = {"from" if pairing.layout == VOLUMES else "raw": request.location}
        trial = try_settings(named, settings, survey.sample, sampler, request.task_timeout)
    ignored = () if reading.classes is None else reading.classes.ignored_values
    findings = survey.findings.without(f"{NO_DATA}:{LABEL}={value}" for value in ignored)
    survey = replace(survey, bad={**survey.bad, **trial.bad}, findings=findings)
    further = () if survey.has_volumes else further_fields(files, pairing, folder)
    fields = {path for field in further for path in field.files}
    rest = [path for path in files if path not in fields]
    rivals = list(rival_questions(rest, request.pairing, pairing))
    if slides or survey.has_volumes:
        uncovered = []
    else:
        uncovered = list(coverage_questions(rest, request.pairing, pairing, fields, bool(rivals)))
    lists = list(list_questions(files, pairing, settings))
    if lists:
        settings = {name: value for name, value in settings.items() if name != "split"}
    questions = [*reading.questions, *uncovered, *rivals, *lists]
    doubts = [*questions, *_trial_doubts(trial, survey), *doubts]
    if questions:
        settings = {DECIDE: questions, **settings}
    parts = (survey, reading, matches, settings, tuple(doubts), further)
    return ProbeResult(count, pairing, None, proposals, *parts)


def _trial_doubts(trial: Trial, survey: Survey) -> Iterator[str]:
    """Report what a build with the proposal would refuse."""
    if trial.refusal is not None:
        yield f"a build refuses this proposal: {trial.refusal}"
    if trial.all_fail:
        first = next(iter(trial.bad.values()))
        yield f"no pair of the sample can be packed with this proposal, the first because {first}"
    elif survey.bad:
        count = "1 bad pair was" if len(survey.bad) == 1 else f"{len(survey.bad)} bad pairs were"
        yield f'{count} found: fix them, or leave them out with on-bad = "skip"'


def _pairing(request: ProbeRequest, proposals: Sequence[Suggestion]) -> tuple[Pairing | None, PairingRules, str | None]:
    """Find the pairs by a layout or by the options, else by suggested templates; return the rules that found them."""
    rules = replace(request.pairing, missing="skip")
    if request.objects is None and VolumeSlices.fits(request.raw, b""):
        try:
            return volume_pairs(request.raw, request.pairing), request.pairing, None
        except InputError as error:
            return None, rules, str(error)
    listed = request.objects.files if request.objects else None
    has_rules = request.pairing != PairingRules()
    try:
        return find_pairs(request.raw, rules, files=listed), rules, None
    except SettingsError:
        raise
    except InputError as error:
        refusal = error
    folder = request.objects or FolderSource(request.raw)
    advised = refusal if has_rules else with_exports(refusal, folder, listed or find_files(request.raw))
    why_not = str(advised).replace(str(request.raw), request.location)
    if not has_rules:
        for suggestion in proposals:
            rules = PairingRules(suggestion.image, suggestion.label, missing="skip")
            try:
                return replace(find_pairs(request.raw, rules, files=listed), layout=GUESSED), rules, None
            except InputError:
                continue
    return None, rules, why_not


def _reading(
    request: ProbeRequest,
    files: Sequence[str],
    survey: Survey,
    matches: Sequence[PresetMatch],
    own_table: ClassTable | None,
) -> tuple[LabelReading, Settings]:
    """Choose the first way to read the labels that fits, and return it with its settings. `own_table`: the classes
    that a build takes without --classes."""
    labels = survey.labels
    raw, table_given = request.raw, load_class_table(request.raw, request.classes, request.ignore)
    if table_given is not None:
        source = "--classes" if request.classes is not None else "the class table of the folder"
        return read_by_table(labels, table_given, source), _given_class_settings(request)
    if own_table is not None:
        return read_by_table(labels, own_table, DATA_SET_FILE), {}
    exact = [match for match in matches if match.exact and not _is_usual_palette(labels, match)]
    if len(exact) == 1 and exact[0].pairs:
        return _by_preset(labels, exact[0]), {"preset": exact[0].name}
    passed_over: list[str] = []
    for path, table in _tables(raw, files):
        if isinstance(table, str):
            passed_over.append(f"{path} cannot be read as a class table ({table})")
            continue
        share = known_share(labels, table, AS_THE_TABLE_SAYS)
        ignored = with_ignored(table, [USUALLY_IGNORED])
        if share == 1 or known_share(labels, ignored, AS_THE_TABLE_SAYS) == 1:
            reading = read_by_table(labels, table if share == 1 else ignored, path)
            others = {} if share == 1 else {"ignore": [USUALLY_IGNORED]}
            return reading, {**_rule_settings(reading.rules), "classes": request.path_of(path), **others}
        if share > 0:
            passed_over.append(f"the class table {path} knows only {100 * share:.2f} % of the label pixels")
    reading = (
        _by_preset(labels, exact[0])
        if exact
        else _with_candidates(request, survey, matches, read_without_table(labels))
    )
    reading = replace(reading, doubts=(*reading.doubts, *passed_over))
    return reading, {**_rule_settings(reading.rules), **_class_settings(reading)}


def _by_preset(labels: LabelSurvey, match: PresetMatch) -> LabelReading:
    return read_by_table(labels, match.classes, f"preset {match.name}", match.rules)


def _with_candidates(
    request: ProbeRequest, survey: Survey, matches: Sequence[PresetMatch], reading: LabelReading
) -> LabelReading:
    """Name the presets that know all values and that something else speaks for, if the classes are only guessed."""
    values = survey.labels.values
    paths = [request.location, *(pair.label for pair in survey.sample)]
    drawn = [match.name for match in matches if match.exact]
    names = list(dict.fromkeys([*drawn, *likely_presets(values, paths, survey.sizes)]))
    if reading.rules.codec != INDEX or not names:
        return reading
    ask = f"perhaps a preset that knows all these values: {', '.join(first_of(names, MOST_CANDIDATES))}"
    return replace(reading, doubts=(*reading.doubts, ask))


def _is_usual_palette(labels: LabelSurvey, match: PresetMatch) -> bool:
    """Return True if only few classes of a palette are used. Many tools give VOC's palette to any classes."""
    if match.pairs or not labels.palettes.indices:
        return False
    used = [value for value in labels.values if value not in match.classes.ignored_values]
    return 2 * max(used, default=0) < len(match.classes)


def _tables(raw: Path, files: Sequence[str]) -> Iterator[tuple[str, ClassTable | str]]:
    """Yield the files that are class tables by name and content. If the name is sure, yield why one is not valid."""
    for path in files:
        name = path.rpartition("/")[2].casefold()
        if name in TABLE_FILES or (name.endswith(TABLE_SUFFIXES) and any(word in name for word in TABLE_WORDS)):
            try:
                yield path, read_table(raw / path)
            except InputError as error:
                if "class" in name and not name.endswith(".txt"):
                    yield path, str(error).splitlines()[-1].strip()


def _propose(
    rules: PairingRules, pairing: Pairing, survey: Survey, reading: LabelReading, label_settings: Settings
) -> tuple[Settings, list[str]]:
    """Return the configuration and the questions that it leaves to the user."""
    settings: dict[str, Setting] = {} if "preset" in label_settings else dict(_pairing_settings(rules, pairing))
    settings |= label_settings
    doubts = list(reading.doubts)
    if pairing.missing:
        settings["missing"] = "skip"
        left = 'missing = "skip" leaves them out, "keep" packs images without labels'
        doubts.append(f"{counted(len(pairing.missing), 'file')} without a partner: {left}")
    if reading.classes is not None and len(reading.classes) > MOST_PLANES:
        settings["labels"] = "index"
    if survey.has_volumes:
        settings["volumes"] = True
        return settings, [*doubts, *volume_doubts(survey, pairing)]
    if len(survey.sizes) > 1:
        settings["size"] = "native"
        doubts.append(
            'pictures have several sizes and size = "native" keeps them; for one size, set size = "512x512" and fit'
        )
    doubts += image_doubts(survey.has_bands, survey.deepest, survey.images, settings)
    return settings, doubts


def _pairing_settings(rules: PairingRules, pairing: Pairing) -> Iterator[tuple[str, Setting]]:
    """Yield the settings that find these pairs again; a known layout needs none."""
    if rules.pairs is not None:
        yield "pairs", str(rules.pairs.absolute())
    if rules.image is not None and rules.label is not None:
        yield from (("image", rules.image), ("label", rules.label))
    if rules.lists is not None:
        yield "lists", rules.lists
    is_whole = {pair.split for pair in pairing.pairs} == {ALL} and pairing.layout != VOLUMES
    if is_whole and len(pairing.pairs) >= LEAST_TO_SPLIT:
        yield "split", "80/10/10"


def _given_class_settings(request: ProbeRequest) -> Settings:
    """Return the given class options as settings."""
    settings: dict[str, Setting] = {}
    if isinstance(request.classes, str):
        values = is_values(request.classes)
        settings["classes"] = request.classes if values else str(Path(request.classes).absolute())
    if request.ignore:
        settings["ignore"] = list(request.ignore)
    return settings


def _rule_settings(rules: LabelRules) -> Settings:
    settings: dict[str, Setting] = {"label-codec": rules.codec}
    if rules.threshold is not None:
        settings["threshold"] = str(rules.threshold)
    if rules.codec == INSTANCE:
        settings["divisor"] = str(rules.divisor)
    if rules.unknown != "error":
        settings["unknown"] = rules.unknown
    return settings


def _class_settings(reading: LabelReading) -> Settings:
    """Return the classes and ignored values as settings. Binary labels need none."""
    table = reading.classes
    if table is None or reading.rules.codec == BINARY:
        return {}
    ignored = [*map(str, table.ignored_values), *(f"#{bytes(colour).hex()}" for colour in table.ignored_colours)]
    return {**({"ignore": ignored} if ignored else {}), "classes": ClassTable(table.classes)}
