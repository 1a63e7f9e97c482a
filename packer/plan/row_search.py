"""`RowSearch`: where the rows of a build come from, and which of them are taken."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packer.config.config import Settings
from packer.config.options import values_of
from packer.config.values import NONE
from packer.decoding.rules import FileRules
from packer.errors import InputError, UsageError
from packer.pairs.fold_file import FoldFile
from packer.pairs.folds import Folds
from packer.pairs.pairing_rules import PairingRules
from packer.pairs.template import CHANNEL, has_channels
from packer.pixels.choices import AREA, LINEAR
from packer.plan.block_rule import BlockRule
from packer.plan.field_choice import FieldChoice
from packer.publish.target import holds_pack
from packer.recipe.source import NO_AXIS, NO_ORIENT, NO_SPACING, Source
from packer.sources.container import Container, Names
from packer.sources.containers import container_of
from readers.stores.open_store import url_of

if TYPE_CHECKING:
    from packer.sources.files.objects import ObjectsSource
    from packer.sources.pack import PackSource

PAIRING = ("lists", "pairs", "split", "split_by", "split_exact", "missing")
"""The options that decide how the files of a folder are paired, besides the templates of the fields."""


@dataclass(frozen=True)
class RowSearch:
    """A folder of files or another source, and which of its rows are taken."""

    raw: Path | None
    """The folder that holds the files, and perhaps the class table. Another source needs none."""
    source: Source | None
    """The source, if the rows are not pairs of files."""
    objects: ObjectsSource | None
    """The objects below a URL, if RAW is one."""
    pairing: PairingRules
    annotations: str | None
    """The template of files of annotations, from which all fields without a template are painted."""
    volumes: bool
    """True if a row is a volume."""
    key: str | None
    """A name that nothing but a container has."""
    only: tuple[str, ...]
    """The splits to take; none means all."""
    blocks: BlockRule | None
    """The blocks of pictures whose tiles get splits; None if whole pictures do."""
    files: FileRules

    @property
    def gives_volumes(self) -> bool:
        """True if the options ask for volumes, or the source gives them."""
        return self.volumes or (self.source is not None and self.source.gives_volumes)

    @classmethod
    def of(cls, settings: Settings, fields: FieldChoice, source: Source | None = None) -> RowSearch:
        """Open the source that these settings name, unless one is given."""
        values, rules = values_of(settings, "rows"), FileRules(**values_of(settings, "rows.files"))
        files = {"image": fields.image.files, "label": fields.label.files}
        container, path = None, Path(str(settings.get("from")))
        if source is None and "from" in settings:
            source, container = _open_from(path, files["image"])
        if container is not None:
            names = Names(files.pop("image") or None, files.pop("label") or None, values.pop("key"))
            source, values["key"] = container.at(path, names), None
        chosen = {name: values.pop(name) for name in ("axis", "orient", "spacing")}
        if source is not None:
            source = _as_chosen(source, **chosen, interpolation=values_of(settings, "shape")["interpolation"])
            source = source.as_volumes() if values["volumes"] else source
        else:
            _check_none(**chosen)
        pairing = _pairing(values, {name: template or None for name, template in files.items()}, fields, source)
        raw = settings.get("from", settings.get("raw")) if source is None else None
        url = url_of(raw)
        objects = None if url is None else _objects_at(url)
        folder = None if raw is None else Path(str(raw))
        return cls(folder if objects is None else objects.raw, source, objects, pairing, files=rules, **values)


def _as_chosen(
    source: Source, axis: int | None, orient: str, spacing: tuple[float, ...] | None, interpolation: str
) -> Source:
    """Return the volumes of a source with the axes and the spacing that options choose."""
    source = source if orient == NONE else source.oriented(orient)
    source = source if axis is None else source.along(axis)
    return source if spacing is None else source.spaced(spacing, LINEAR if interpolation == AREA else interpolation)


def _check_none(axis: int | None, orient: str, spacing: tuple[float, ...] | None) -> None:
    """Refuse options for volumes where the rows are pictures."""
    if axis is not None:
        raise UsageError(NO_AXIS.format(axis))
    if orient != NONE:
        raise UsageError(NO_ORIENT.format(orient))
    if spacing is not None:
        raise UsageError(NO_SPACING)


def _open_from(path: Path, image: str) -> tuple[Source | None, Container | None]:
    """Open the pack or find the container that --from names; neither if it is a folder of files."""
    if holds_pack(path):
        return pack_at(path), None
    container = container_of(path)
    if container is None and url_of(path) is None and not path.is_dir():
        problem = "is a file of an unknown kind; expected a pack, a container of rows, or a folder"
        raise InputError(f"{path}: {problem if path.exists() else 'there is no such pack, container or folder'}")
    is_file_for_each_row = container is not None and container.kind == "npy" and "{key}" in image
    return None, None if is_file_for_each_row else container


def pack_at(path: Path) -> PackSource:
    """Open a pack whose rows are packed again."""
    from packer.sources.pack import PackSource

    return PackSource.at(path)


def _objects_at(url: str) -> ObjectsSource:
    from packer.sources.files.objects import ObjectsSource

    return ObjectsSource.at(url)


def _pairing(
    values: dict[str, Any], files: dict[str, str | None], fields: FieldChoice, source: Source | None
) -> PairingRules:
    """Take the rules for pairs out of the values of all options."""
    rules = {name: values.pop(name) for name in PAIRING}
    folds = values.pop("folds")
    if folds is not None:
        if rules["split"]:
            raise UsageError("--split and --folds both draw splits: give only one of them")
        rules["split"] = Folds.of(folds) if isinstance(folds, int) else FoldFile.read(folds)
    if values["blocks"] is not None:
        values["blocks"], rules["split"] = BlockRule.of(values["blocks"], rules, values["only"]), None
    rules |= {**files, "has_label": fields.has_label, "further": fields.further_files}
    if has_channels(rules.get("image") or ""):
        rules["channels"] = fields.channels
        _check_channels(rules["image"], values)
    annotations = values["annotations"]
    if annotations is None:
        return PairingRules(**rules)
    if source is not None or files["label"]:
        other = "--label, which names label pictures" if files["label"] else "rows that are not files"
        raise UsageError(f"--annotations {annotations}: cannot be combined with {other}")
    return PairingRules.of_painted(rules)


def _check_channels(image: str, values: dict[str, Any]) -> None:
    """Refuse what needs a picture in one file."""
    if values["volumes"]:
        raise UsageError(f"--image {image}: {{{CHANNEL}}} names the bands of pictures and scans, not of TIFF volumes")
    if values["annotations"] is not None:
        raise UsageError(
            f"--image {image}: labels are painted on pictures of one file, and {{{CHANNEL}}} makes one of several; "
            "give the label pictures: --label TEMPLATE"
        )
