"""Find the pairs of volumes in a folder: those whose paths fit two templates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from packer.errors import InputError, Problem, UsageError
from packer.pairs.files import list_files
from packer.sources.container import Names
from packer.sources.volumes.nifti_volume import SUFFIXES
from readers.contract.manifest import ALL

LAYOUTS = (
    ("imagesTr/{key}_0000", "labelsTr/{key}"),
    ("imagesTr/{key}", "labelsTr/{key}"),
    ("images/{key}", "labels/{key}"),
)
"""The templates that are tried without --image and --label: nnU-Net and the Medical Segmentation Decathlon."""
_PARTS = re.compile(r"\{(key|split)\}")
_FIRST = "_0000"
_SUFFIX, _CHANNEL = re.compile(r"(?i)\.nii(\.gz)?$"), re.compile(r"(?i)_\d{4}\.nii(\.gz)?$")
Volumes = dict[tuple[str, str], tuple[str, str]]
"""By split and key, the paths of the image and of the label."""


def find_volumes(path: Path, names: Names) -> tuple[tuple[str, str], Volumes]:
    """Return the templates that fit, and the pairs. A volume without a partner is an error."""
    if names.key is not None:
        raise UsageError(f"--key {names.key}: the keys of volumes are in their names; use --image and --label")
    if bool(names.image) != bool(names.label):
        raise UsageError("--image and --label go together: give both templates")
    files = [file for file in list_files(path) if is_volume(file)]
    chosen = [(names.image, names.label)] if names.image and names.label else LAYOUTS
    for templates in chosen:
        images, labels = (_matches(template, files) for template in templates)
        if images and labels:
            if (names.image, names.label) != templates:
                _check_channels(path, files, images.values(), templates)
            break
    else:
        forms = " or ".join(f"--image {image} --label {label}" for image, label in chosen)
        raise InputError(f"{path}: has {len(files)} volumes, and no pairs of the form {forms}")
    problems = [
        Problem(f"no {noun}", "", (mine[key],))
        for noun, mine, others in (("label", images, labels), ("image", labels, images))
        for key in sorted(mine.keys() - others.keys())
    ]
    if problems:
        raise InputError(f"{path}: volumes without a partner", problems)
    return templates, {key: (images[key], labels[key]) for key in sorted(images)}


def _check_channels(path: Path, files: Sequence[str], images: Iterable[str], templates: tuple[str, str]) -> None:
    """Refuse the form of nnU-Net if cases have more channels than the first, which would be packed alone."""
    first = {stem for image in images if (stem := _SUFFIX.sub("", image)).endswith(_FIRST)}
    cases = {stem.removesuffix(_FIRST) for stem in first}
    others = [file for file in files if _CHANNEL.sub("", file) in cases and _SUFFIX.sub("", file) not in first]
    if others:
        image, label = templates
        raise InputError(
            f"{path}: its cases have several channels, which are not packed together yet; "
            f"--image '{image}' --label '{label}' packs one channel alone",
            [Problem("is a further channel", "", (file,)) for file in others],
        )


def is_volume(name: str) -> bool:
    return name.lower().endswith(SUFFIXES)


def _matches(template: str, files: Sequence[str]) -> dict[tuple[str, str], str]:
    """Return the files that fit a template, by split and key. Two of one key are an error."""
    stem = _SUFFIX.sub("", template)
    names = _PARTS.findall(stem)
    if "key" not in names or len(set(names)) != len(names):
        raise UsageError(f"template {template!r}: needs {{key}} once, and may have {{split}}")
    texts = _PARTS.sub("\0", stem).split("\0")
    groups = [*(f"(?P<{name}>{'.+' if name == 'key' else '[^/]+'})" for name in names), ""]
    pattern = re.compile(
        "".join(re.escape(text) + group for text, group in zip(texts, groups, strict=True)) + r"\.nii(?:\.gz)?",
        re.IGNORECASE | re.DOTALL,
    )
    paths: dict[tuple[str, str], str] = {}
    for file in files:
        match = pattern.fullmatch(file)
        if match:
            key = match.groupdict().get("split", ALL), match["key"]
            if key in paths:
                raise InputError(f"{paths[key]} and {file}: both are {key[1]} by the template {template}")
            paths[key] = file
    return paths
