"""Propose a configuration for a folder of pictures with the files of a labelling tool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from packer.config.config import DECIDE, Setting, Settings
from packer.config.effective import effective
from packer.errors import BadPair, InputError, PackError, Problem, counted, first_of
from packer.pairs.files import RawFiles, find_files
from packer.pairs.pairing_rules import PairingRules
from packer.pairs.paths import is_picture
from packer.pairs.template import Template
from packer.plan.make_plan import make_plan
from packer.plan.plan import Plan
from packer.plan.request import Request
from packer.plan.sample import spread_indices
from packer.probe.image_settings import deepest_of, image_doubts
from packer.probe.request import ProbeRequest
from packer.sources.annotated.annotated import AnnotatedSource
from packer.sources.annotated.annotation_files import CERTAIN, FoundAnnotations, annotations_in, label_pictures
from packer.sources.annotated.find_indexed import AnnotationTemplate, indexed_in
from packer.sources.files.folder import FolderSource
from readers.contract.manifest import ALL
from readers.contract.tiles import Size

MOST_PLANES = 3
"""With more classes than this, one plane per class would be most of the pack; labels=index is smaller."""
MOST_NAMED = 3
"""The most files that a question names."""
MOST_HEADERS = 64
"""The images whose headers are read before the plan."""
EVERY = "{key}"
"""The template of all pictures."""
LEAST_TO_SPLIT = 10
"""With fewer pairs no split is proposed."""


@dataclass(frozen=True)
class AnnotatedProposal:
    """The annotations of a folder, and the configuration that packs them."""

    layout: str
    settings: Settings
    doubts: tuple[str, ...]
    """Questions that the user must decide."""
    splits: Mapping[str, int]
    """The pictures of each split."""
    objects: Mapping[str, int]
    """The objects of each category."""
    classes: tuple[str, ...]
    sizes: Mapping[Size, int]
    missing: tuple[Problem, ...]
    rejects: tuple[str, ...]


def propose_annotated(request: ProbeRequest) -> AnnotatedProposal | None:
    """Return a proposal for annotations that are found where they usually are, if no option names label pictures."""
    if request.pairing != PairingRules():
        return None
    folder = request.objects or FolderSource(request.raw)
    files: RawFiles = request.objects.files if request.objects else find_files(request.raw)
    try:
        annotations = annotations_in(folder, files)
    except InputError:
        if label_pictures(files):  # the trial of these names both ways
            return None
        raise
    many = indexed_in(folder, files) if annotations is None and type(folder) is FolderSource else None
    if annotations is None and many is None:
        return None
    settings = _templates(annotations, many)
    questions = _questions(many) if many else []
    if annotations is not None and annotations.doubt:
        questions.append(
            f"are these outlines? {annotations.template} could have {annotations.doubt}; a label needs outlines"
        )
    if isinstance(request.classes, str):
        settings["classes"] = str(Path(request.classes).absolute())
    if request.ignore:
        settings["ignore"] = list(request.ignore)
    doubts_of_images = list(_image_doubts(folder, files, settings))
    lenient = {"missing": "skip", "on-bad": "skip", "size": "native", "unknown": "ignore"}
    with TemporaryDirectory() as target:
        folders = {"raw": request.location, "out": str(Path(target) / "out"), "workers": "1"}
        try:
            plan = make_plan(Request.from_settings({**effective({**settings, **lenient}), **folders}))
        except PackError as error:
            reason = ": ".join(line.strip() for line in str(error).splitlines()[:2])
            doubts = (*questions, f"a build refuses this proposal: {reason}")
            return AnnotatedProposal("unknown", settings, doubts, {}, {}, (), {}, (), ())
    refs = plan.found_rows.refs
    if refs.splits.keys() == {ALL} and len(refs) >= LEAST_TO_SPLIT and not (many and many.splits):
        settings["split"] = "80/10/10"
    return _proposal(settings, questions, doubts_of_images, plan)


def _templates(annotations: FoundAnnotations | None, many: AnnotationTemplate | None) -> dict[str, Setting]:
    """Return the settings of annotations of one picture each, or else of many; none if there are none."""
    if annotations is not None:
        certain = CERTAIN if annotations.doubt else ""  # the user answers a question first
        return {"image": annotations.images, "annotations": f"{certain}{annotations.template}"}
    if many is None:
        return {}
    settings: dict[str, Setting] = {"annotations": many.template}
    if many.images:
        settings["image"] = many.images
    return settings


def _questions(many: AnnotationTemplate) -> list[str]:
    """Return what else could be the labels of a folder with annotations of many pictures."""
    unread = "are there, too, and this proposal does not read them"
    questions = [f"label pictures {unread}: image = '{image}', label = '{label}'" for image, label in many.labels]
    if many.splits:
        shown = ", ".join(first_of(many.splits, MOST_NAMED))
        questions.append(
            f"are these folders the splits: {shown}? Then name them, such as image = 'images/{{split}}/{{key}}', or "
            "draw others, such as split = '80/10/10'. The proposal does neither"
        )
    if many.others:
        others = ", ".join(first_of(many.others, MOST_NAMED))
        questions.append(f"other files of annotations {unread}: {others}")
    return questions


def _image_doubts(folder: FolderSource, files: RawFiles, settings: dict[str, Setting]) -> Iterator[str]:
    """Set how the images are stored, by the headers of a sample, and report the guesses."""
    template = str(settings.get("image", EVERY))
    images = [path for path in files.paths if is_picture(path) and Template(template).match(path)]
    headers = []
    for index in spread_indices(len(images), MOST_HEADERS):
        with suppress(BadPair):  # a build says why
            headers.append(folder.header(images[index]))
    return image_doubts(
        any(header.extra for header in headers),
        deepest_of(header.plain_depth for header in headers),
        map(str, headers),
        settings,
    )


def _proposal(
    settings: dict[str, Setting], questions: list[str], doubts_of_images: Sequence[str], plan: Plan
) -> AnnotatedProposal:
    doubts = [*questions, *doubts_of_images]
    if plan.found_rows.missing:
        settings["missing"] = "skip"
        left = 'missing = "skip" leaves them out, "keep" packs pictures without annotations'
        doubts.append(f"{counted(len(plan.found_rows.missing), 'file')} without a partner: {left}")
    if plan.rejects and len(plan.rejects) == len(plan.found_rows.refs):
        doubts.append(f"a build refuses this proposal: every pair is bad, the first because {plan.rejects[0]}")
    elif plan.rejects:
        doubts.append(
            f'{counted(len(plan.rejects), "bad pair")} found: fix them, or leave them out with on-bad = "skip"'
        )
    if len(plan.sizes) > 1:
        settings["size"] = "native"
        doubts.append(
            'pictures have several sizes and size = "native" keeps them; for one size, set size = "512x512" and fit'
        )
    classes = plan.recipe.classes.names if plan.recipe.classes else ()
    if len(classes) > MOST_PLANES:
        settings["labels"] = "index"
    source = plan.found_rows.source
    assert isinstance(source, AnnotatedSource), "the settings name annotations"
    objects = Counter({name: count for name, (count, _) in source.count(plan.found_rows.refs).objects.items()})
    splits, sizes, missing = dict(plan.found_rows.refs.splits), plan.sizes, plan.found_rows.missing
    most = dict(objects.most_common())
    if questions:
        settings = {DECIDE: questions, **settings}
    layout = plan.found_rows.layout
    return AnnotatedProposal(layout, settings, tuple(doubts), splits, most, classes, sizes, missing, plan.rejects)
