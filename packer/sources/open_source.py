"""Open a source and find all of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise, starmap
from pathlib import Path
from typing import Any

from packer.errors import InputError, Problem, UsageError
from packer.pairs.candidates import UNWRITABLE
from packer.pairs.files import RawFiles, find_files
from packer.pairs.find import search_pairs, sort_joined
from packer.pairs.folder_names import Folders, first_names
from packer.pairs.further import FurtherFiles
from packer.pairs.join_files import Joined, Row, join_files
from packer.pairs.pairing_rules import ERROR, PairingRules
from packer.pairs.split_exact import ClassPixels
from packer.pairs.template import ANNOTATIONS, SLIDES
from packer.recipe.ref_table import RefTable
from packer.recipe.row_ref import RowRef
from packer.recipe.sorted_lines import SortedLines
from packer.recipe.source import NO_AXIS, Listing, Source, Wanted
from packer.sources.container import Names
from packer.sources.containers import container_of
from packer.sources.files.folder import FolderSource, images_of, refs_of
from packer.sources.files.objects import ObjectsSource
from packer.sources.files.slides import check_readable, has_slides
from readers.contract.classes import ClassTable
from readers.contract.fields import IMAGE, LABEL, Field
from readers.contract.manifest import ALL, NAME

NO_SLIDES = f"only slides have levels, and none of these pictures is one: {', '.join(SLIDES)}"
CountPixels = Callable[[Source, Sequence[RowRef]], Sequence[ClassPixels]]
"""Count the label pixels of rows by class. An image without a part is not loaded."""


@dataclass(frozen=True)
class FoundRows:
    """All rows of a source, sorted, and what else was found."""

    source: Source
    refs: RefTable = field(repr=False)
    layout: str
    """The layout, the option or the kind of source that gave the rows."""
    missing: tuple[Problem, ...] = ()
    """Files without a partner."""
    notes: tuple[str, ...] = ()
    classes: ClassTable | None = None
    """The classes of a source that has labels of class indices."""
    packed: tuple[Field, ...] = ()
    """The fields of a source whose rows were packed before."""
    class_names: tuple[str, ...] = ()
    """The names of the numbers in the labels, if the source has them and no table is given."""


@dataclass(frozen=True)
class SourceOptions:
    """The options that decide which rows there are: how the pairs of a folder are found, or another source."""

    pairing: PairingRules = field(default_factory=PairingRules)
    given: Source | None = None
    only: tuple[str, ...] = ()
    """The splits to take; none means all."""
    key: str | None = None
    """A name that nothing but a container has."""
    objects: ObjectsSource | None = None
    """The objects below a URL, if RAW is one."""
    annotations: str | None = None
    """The template of files of annotations, from which all fields without a template are painted."""
    volumes: bool = False
    """True if a row is a volume."""

    @property
    def gives_volumes(self) -> bool:
        """True if the options ask for volumes, or the source gives them."""
        return self.volumes or (self.given is not None and self.given.gives_volumes)

    @classmethod
    def take_from(cls, values: dict[str, Any], given: Source | None = None, path: Path | None = None) -> SourceOptions:
        """Take the options of a source out of the values of all options, and open the container at `path`, if any."""
        key = values.pop("key", None)
        container = None if path is None else container_of(path)
        if container is not None and container.kind == "npy" and "{key}" in str(values.get("image")):
            container = None  # a folder of files, one for each row
        if container is not None and path is not None:
            given = container.at(path, Names(values.pop("image", None), values.pop("label", None), key))
            key = None
        axis, volumes = values.pop("axis", None), bool(values.pop("volumes", False))
        if axis is not None:
            if given is None:
                raise UsageError(NO_AXIS.format(axis))
            given = given.along(int(axis))
        if volumes and given is not None:
            given = given.as_volumes()
        values["further"] = tuple(FurtherFiles(*each) for each in values.get("further", ()))
        rules = {rule.name: values.pop(rule.name) for rule in fields(PairingRules) if rule.name in values}
        annotations = values.pop("annotations", None)
        if annotations is not None and (given is not None or rules.get("label")):
            other = "--label, which names label pictures" if rules.get("label") else "rows that are not files"
            raise UsageError(f"--annotations {annotations}: cannot be combined with {other}")
        pairing = PairingRules(**rules) if annotations is None else PairingRules.of_painted(rules)
        return cls(pairing, given, values.pop("only", ()), key, annotations=annotations, volumes=volumes)

    def find_rows(
        self, raw: Path | None, out: Path, max_pixels: int, count_pixels: CountPixels, slide_level: int = 0
    ) -> tuple[FoundRows, InputError | None]:
        """Find all rows. If some are found in spite of problems, also return the error with these."""
        if self.key is not None:
            raise UsageError(f"--key {self.key}: names the keys in a container; other rows have their own keys")
        if self.given is not None:
            if slide_level:
                raise UsageError(f"--slide-level {slide_level}: {NO_SLIDES}")
            return self._given_rows(self._with_fields(self.given), Wanted(out, max_pixels, self.pairing.keeps))
        assert raw is not None, "without a source there is a folder"
        if self.volumes and self.objects is not None:
            raise UsageError("--volumes: objects of a store are read as pictures; copy them into a folder first")
        folder = self.objects or FolderSource(raw, volumes=self.volumes, slide_level=slide_level)
        folder = replace(folder, max_pixels=max_pixels)

        def count(labels: Sequence[str]) -> Sequence[ClassPixels]:
            return count_pixels(folder, [RowRef("", "", ("", label)) for label in labels])

        files = self._files(raw, out)
        if isinstance(files, RawFiles) and self._may_be_annotated(files.folders):
            if self.volumes:
                raise UsageError("--volumes: labels are painted on pictures; give the label volumes: --label TEMPLATE")
            annotated = self._annotated(folder, files, out)
            if annotated is not None:
                if self._check_slides(annotated[0].refs, slide_level):
                    raise UsageError("labels are not painted on slides; give the label pictures: --label TEMPLATE")
                return annotated
        many = sort_joined(raw, files, out, self._sorted) if isinstance(files, Joined) else None
        refusal = None
        if many is None:
            known = files if isinstance(files, RawFiles) else None
            try:
                pairing, refusal = search_pairs(raw, self.pairing, out, count, self.only, known)
            except InputError as error:
                raise self._advised(error, folder, find_files(raw, out) if known is None else known) from None
            refs = RefTable.of(
                self._taken(refs_of(pairing.pairs) if self.pairing.has_label else images_of(pairing.pairs))
            )
        else:
            pairing, refs = many
        label = (pairing.label_template,) if self.pairing.has_label else ()
        templates = (pairing.image_template, *label, *(each.template for each in self.pairing.further))
        slides = self._check_slides(refs, slide_level)
        source = replace(folder, templates=templates, slides=slides)  # without the pairs: the table has them
        notes = pairing.notes
        return FoundRows(source, refs, pairing.layout, pairing.missing, notes), refusal

    def _check_slides(self, refs: RefTable, slide_level: int) -> bool:
        """Return whether some files are slides. Refuse slides that are not read here, and a level of other pictures."""
        if not has_slides(refs):
            if slide_level:
                raise UsageError(f"--slide-level {slide_level}: {NO_SLIDES}")
            return False
        if self.volumes:
            raise UsageError("--volumes: slides are pictures; leave it out")
        check_readable(self.objects is not None)
        return True

    def _files(self, raw: Path, out: Path) -> Joined | RawFiles:
        if self.objects:
            return self.objects.files
        if self.annotations is not None:
            return find_files(raw, out)
        return join_files(raw, self.pairing, out, SortedLines)

    def _may_be_annotated(self, folders: Folders) -> bool:
        """True if annotations are given, or if no option says where labels are and there are files of annotations."""
        rules = self.pairing
        if self.annotations is not None or not rules.has_label or rules.image or rules.label or rules.pairs:
            return self.annotations is not None
        return any(name.endswith(ANNOTATIONS) for names in first_names(folders).values() for name in names)

    def _annotated(
        self, folder: FolderSource, files: RawFiles, out: Path
    ) -> tuple[FoundRows, InputError | None] | None:
        """Find pictures whose labels are painted. Formats are imported now: a build of label pictures needs none."""
        if self.annotations is None or "{key}" in self.annotations:
            from packer.sources.annotated.annotated_rows import annotated_rows

            found = annotated_rows(self.annotations, folder, files, self.pairing, out, self.only)
        else:
            from packer.sources.annotated.indexed_rows import indexed_rows

            found = indexed_rows(self.annotations, folder, files, self.pairing, out, self.only)
        if found is None:
            return None
        refs, pairing = RefTable.of(self._taken(found.refs)), found.pairing
        rows = FoundRows(found.source, refs, pairing.layout, pairing.missing, pairing.notes)
        return rows, found.refusal

    def _advised(self, error: InputError, folder: FolderSource, files: RawFiles) -> InputError:
        """Return an error of pairs that were not found, with advice if no option says where labels are."""
        rules = self.pairing
        if isinstance(error, UsageError) or not rules.has_label or rules.label or rules.pairs or rules.lists:
            return error
        from packer.sources.annotated.exports import with_exports

        return with_exports(error, folder, files)

    def _sorted(self, rows: Iterable[Row]) -> RefTable:
        return RefTable.of(self._taken(starmap(RowRef, rows)))

    def _with_fields(self, source: Source) -> Source:
        """Return the source with the fields of the build, if these are others than image and label."""
        if self.pairing.has_label and not self.pairing.further:
            return source
        label = (LABEL,) if self.pairing.has_label else ()
        return source.with_fields((IMAGE, *label, *(files.name for files in self.pairing.further)))

    def _taken(self, refs: Iterable[RowRef]) -> Iterator[RowRef]:
        """Return the rows of the splits to take, and refuse a split that has none."""
        return self._chosen(refs) if self.only else iter(refs)

    def _chosen(self, refs: Iterable[RowRef]) -> Iterator[RowRef]:
        splits = set[str]()
        for ref in refs:
            splits.add(ref.split)
            if ref.split in self.only:
                yield ref
        for split in self.only:
            if split not in splits:
                raise UsageError(f"--only {split}: there is no such split, only {', '.join(sorted(splits))}")

    def _given_rows(self, source: Source, wanted: Wanted) -> tuple[FoundRows, InputError | None]:
        """Find the rows of a source. Samples without a field are an error, or left out."""
        listing = source.list_rows(wanted)
        plain = PairingRules() if listing.missing is None else PairingRules(missing=self.pairing.missing)
        plain = replace(plain, has_label=self.pairing.has_label, further=self.pairing.further)
        for rule in fields(PairingRules):
            if getattr(self.pairing, rule.name) != getattr(plain, rule.name):
                raise UsageError(_not_of_files(rule.name, listing.layout))
        refs = _good_rows(self._taken(listing.rows), listing)
        refusal, missing = None, tuple(listing.missing or ())
        if missing and self.pairing.missing == ERROR:
            lacking = f"{listing.folder}: {len(missing)} samples lack a field; --missing skip skips them"
            refusal = InputError(lacking, missing)
        names = listing.class_names()
        return FoundRows(source, refs, listing.layout, missing, (), listing.classes, listing.packed, names), refusal


def _not_of_files(rule: str, kind: str) -> str:
    """Return why an option for the files of a folder is refused for other rows, and what to do."""
    option = f"--{rule.replace('_', '-')}"
    if rule.startswith("split"):
        return (
            f"{option}: divides the files of a folder, and rows of the kind {kind} have the splits that the source "
            "names; leave it out, or pack them, write them as files with packer extract, and build these with --split"
        )
    return f"{option}: pairs the files of a folder, and rows of the kind {kind} are pairs already; leave it out"


def _good_rows(rows: Iterable[RowRef], listing: Listing) -> RefTable:
    """Return all rows. Names that no pack can hold, keys that occur twice, and files that cannot be listed are an error
    that names them all."""
    problems: list[Problem] = []
    refs = RefTable.of(ref for ref in rows if _is_good(ref, problems))
    for split in refs.splits:
        if not NAME.fullmatch(split) or (split == ALL and len(refs.splits) > 1):
            problems.append(
                Problem("is not the name of a split", "use letters, digits and ._-", (repr(split),), "split")
            )
    for before, ref in pairwise(refs):
        if before[:2] == ref[:2]:
            problems.append(Problem("has more than one row", "", (f"{ref.split}/{ref.key}",), "key"))
    problems = [*listing.problems, *problems, *(() if refs else listing.missing or ())]
    if problems or not refs:
        found = "rows that cannot be packed" if problems else f"no rows{listing.contents()}"
        raise InputError(f"the source has {found}", problems)
    return refs


def _is_good(ref: RowRef, problems: list[Problem]) -> bool:
    """Return whether a pack and a table can hold the names of a row; add the problem otherwise."""
    if ref.key and not UNWRITABLE.search(ref.key) and not any("\n" in part or "\0" in part for part in ref.parts):
        return True
    problems.append(Problem("is empty, has control characters or is not UTF-8", "rename it", (repr(ref.key),), "key"))
    return False
