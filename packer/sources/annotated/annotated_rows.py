"""Find pictures, and the file of annotations that each has: by `--annotations`, or where such files lie usually."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from packer.errors import InputError, UsageError
from packer.pairs.files import RawFiles
from packer.pairs.find import Pairing, search_pairs
from packer.pairs.pairing_rules import PairingRules
from packer.recipe.row_ref import RowRef
from packer.sources.annotated.annotated import AnnotatedSource
from packer.sources.annotated.annotation_files import CERTAIN, annotations_by, annotations_in
from packer.sources.annotated.vector_files import is_vector, library
from packer.sources.files.folder import FolderSource, images_of
from packer.sources.files.objects import ObjectsSource


@dataclass(frozen=True)
class AnnotatedRows:
    """The pictures that were found, the source of their annotations, and what is missing."""

    source: AnnotatedSource
    refs: Iterable[RowRef]
    pairing: Pairing
    refusal: InputError | None


def annotated_rows(
    template: str | None, folder: FolderSource, files: RawFiles, rules: PairingRules, out: Path, only: Sequence[str]
) -> AnnotatedRows | None:
    """Find the pictures that have a file of annotations each. None if no template is given and there are no such files.

    Fields without a template are painted.
    """
    image = str(rules.pairs) if rules.pairs else rules.image
    annotations = annotations_in(folder, files) if template is None else annotations_by(template, image, folder, files)
    if annotations is None:
        return None
    if is_vector(annotations.template):
        if isinstance(folder, ObjectsSource):
            raise UsageError("shapefiles and GeoPackages are not read from a store; copy them into a folder")
        library()
    if annotations.doubt:
        raise InputError(
            f"{folder.raw}: the objects in {annotations.template} could be {annotations.doubt}; a label needs "
            f"outlines. If they are outlines: --annotations '{CERTAIN}{annotations.template}'"
        )
    if rules.split_exact:
        raise UsageError("--split-exact: counts the pixels of label pictures; annotations have none before a build")
    painted = PairingRules.of_painted(vars(rules))
    further = tuple(
        field if field.template else replace(field, template=annotations.template) for field in painted.further
    )
    plain = replace(painted, image=None if rules.pairs else rules.image or annotations.images, further=further)
    pairing, refusal = search_pairs(folder.raw, plain, out, only=only, files=files)
    templates = (pairing.image_template, *(field.template for field in further))
    source = AnnotatedSource(replace(folder, templates=templates), annotations.format, (), names=annotations.names)
    return AnnotatedRows(source, images_of(pairing.pairs), replace(pairing, layout=annotations.layout), refusal)
