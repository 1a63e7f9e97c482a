"""Find the pairs of volumes in a folder: those whose paths fit two templates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from packer.decoding.raw_file import SEPARATOR
from packer.errors import InputError, Problem, UsageError
from packer.pairs.files import list_files
from packer.sources.container import Names
from packer.sources.volumes.dicom import FOLDER, series_folders
from packer.sources.volumes.formats import SUFFIXES
from readers.contract.manifest import ALL

CHANNEL = "{channel}"
LAYOUTS = (
    ("imagesTr/{key}_{channel}", "labelsTr/{key}"),
    ("imagesTr/{key}", "labelsTr/{key}"),
    ("images/{key}", "labels/{key}"),
)
"""The templates that are tried without --image and --label: nnU-Net and the Medical Segmentation Decathlon."""
_PARTS = re.compile(r"\{(key|split|channel)\}")
_FORMS = {"key": ".+", "split": "[^/]+", "channel": "[^/_]+"}
_NUMBERED = {**_FORMS, "channel": "[0-9]{4}"}
"""Without templates, a channel is a number of four digits, as nnU-Net writes it."""
_NIFTI = (".nii", ".nii.gz")
_ENDS = (*SUFFIXES, FOLDER)
_SUFFIX = re.compile(f"({'|'.join(map(re.escape, _ENDS))})$", re.IGNORECASE)
Volumes = dict[tuple[str, str], tuple[str, str]]
"""By split and key, the path of the image, or the paths of its channels, and the path of the label."""


def find_volumes(path: Path, names: Names) -> tuple[tuple[str, str], Volumes, tuple[str, ...]]:
    """Return the templates that fit, the pairs, and the texts of {channel}. A volume without a partner is an error."""
    if names.key is not None:
        raise UsageError(f"--key {names.key}: the keys of volumes are in their names; use --image and --label")
    if bool(names.image) != bool(names.label):
        raise UsageError("--image and --label go together: give both templates")
    if names.label and CHANNEL in names.label:
        raise UsageError(f"--label {names.label}: a label has one channel; {CHANNEL} is for --image")
    listed = list_files(path)
    files = [*filter(is_volume, listed), *series_folders(path, listed)]
    forms_of = _FORMS if names.image else _NUMBERED
    chosen = [(names.image, names.label)] if names.image and names.label else LAYOUTS
    for templates in chosen:
        labels, _ = _cases(path, files, templates[1], forms_of)
        taken = {*labels.values()}
        images, channels = _cases(path, [file for file in files if file not in taken], templates[0], forms_of)
        if images.keys() & labels.keys():
            _check_channels(path, templates[0], images, channels)
            templates = _plainest(templates, images.values())
            break
    else:
        forms = " or ".join(f"--image {image} --label {label}" for image, label in chosen)
        raise InputError(f"{path}: has {len(files)} volumes, and no pairs of the form {forms}")
    problems = [
        Problem(f"no {noun}", "", (mine[key].replace(SEPARATOR, ", "),))
        for noun, mine, others in (("label", images, labels), ("image", labels, images))
        for key in sorted(mine.keys() - others.keys())
    ]
    if problems:
        raise InputError(f"{path}: volumes without a partner", problems)
    return templates, {key: (images[key], labels[key]) for key in sorted(images)}, channels


def _cases(
    path: Path, files: Sequence[str], template: str, forms: Mapping[str, str]
) -> tuple[dict[tuple[str, str], str], tuple[str, ...]]:
    """Return the images, or the labels, of all cases by split and key: a path, or the paths of their channels in order;
    and the texts of these channels."""
    matches = _matches(template, files, forms)
    if CHANNEL not in template:
        return {(split, key): file for (split, key, _), file in matches.items()}, ()
    texts = {channel for _, _, channel in matches}
    channels = sorted(texts, key=int) if all(map(str.isdecimal, texts)) else sorted(texts)
    cases: dict[tuple[str, str], dict[str, str]] = {}
    for (split, key, channel), file in matches.items():
        cases.setdefault((split, key), {})[channel] = file
    paths = {key: SEPARATOR.join(case.get(name, "") for name in channels) for key, case in cases.items()}
    return paths, tuple(channels)


def _check_channels(path: Path, template: str, images: Mapping[tuple[str, str], str], channels: Sequence[str]) -> None:
    """Refuse cases that lack a channel."""
    problems = [
        Problem(f"no channel {name}", "", (next(filter(None, files)),))
        for _, files in sorted((key, image.split(SEPARATOR)) for key, image in images.items())
        for name, file in zip(channels, files, strict=False)
        if not file
    ]
    if problems:
        raise InputError(
            f"{path}: {template} finds the channels {', '.join(channels)}, and every case needs all of them", problems
        )


def is_volume(name: str) -> bool:
    return name.lower().endswith(SUFFIXES)


def _plainest(templates: tuple[str, str], images: Iterable[str]) -> tuple[str, str]:
    """Return the templates of nnU-Net without {channel} if all cases have the first channel alone."""
    alone = templates == LAYOUTS[0] and all(_SUFFIX.sub("", image).endswith("_0000") for image in images)
    return (templates[0].replace(CHANNEL, "0000"), templates[1]) if alone else templates


def _endings(template: str) -> str:
    """Return the pattern of the ends that fit a template: its own one, or any. Files of NIfTI may be packed."""
    suffix = _SUFFIX.search(template)
    own = (suffix[0].lower(),) if suffix else _ENDS
    return f"(?:{'|'.join(map(re.escape, _NIFTI if own[0] in _NIFTI and suffix else own))})"


def _matches(template: str, files: Sequence[str], forms: Mapping[str, str]) -> dict[tuple[str, str, str], str]:
    """Return the files that fit a template, by split, key and channel. Two of one key are an error."""
    stem = _SUFFIX.sub("", template)
    names = _PARTS.findall(stem)
    if "key" not in names:
        raise UsageError(f"template {template!r}: needs {{key}}, and may have {{split}}, and {{channel}} of images")
    texts = _PARTS.sub("\0", stem).split("\0")
    again = [name in names[:number] for number, name in enumerate(names)]
    forms_of = [
        f"(?P={name})" if is_again else f"(?P<{name}>{forms[name]})"
        for name, is_again in zip(names, again, strict=True)
    ]
    groups = [*forms_of, ""]
    pattern = re.compile(
        "".join(re.escape(text) + group for text, group in zip(texts, groups, strict=True)) + _endings(template),
        re.IGNORECASE | re.DOTALL,
    )
    paths: dict[tuple[str, str, str], str] = {}
    for file in files:
        match = pattern.fullmatch(file)
        if match:
            texts_of = match.groupdict()
            key = texts_of.get("split", ALL), match["key"], texts_of.get("channel", "")
            if key in paths:
                raise InputError(
                    f"{paths[key]} and {file}: both are {' '.join(key[1:]).strip()} by the template {template}"
                )
            paths[key] = file
    return paths
