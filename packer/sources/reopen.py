"""Open a source in a worker, from the text that the source gave of itself."""

from __future__ import annotations

import json

from packer.recipe.source import Source
from packer.sources.containers import CONTAINERS, source_class
from packer.sources.files.folder import FolderSource
from packer.sources.portable_functions import FUNCTIONS

KINDS = {
    "nifti volumes": "volumes.whole_volumes.WholeVolumes",
    "objects": "files.objects.ObjectsSource",
    "pack": "pack.PackSource",
    "rows": "rows.Rows",
    "annotated": "annotated.annotated.AnnotatedSource",
    "indexed": "annotated.indexed.IndexedSource",
    **CONTAINERS,
}
"""The module and the class of each kind of source but a folder, imported when one is opened."""


def reader_of(text: str) -> str:
    """Name what reads a row of the source with this text, for the reason of a crash; of none it is a decoder."""
    is_function = bool(text) and FUNCTIONS in json.loads(text)
    return "the process that ran load()" if is_function else "the decoder"


def reopen(text: str) -> Source:
    """Return the source that gave this text."""
    facts = json.loads(text)
    kind = facts["kind"]
    if kind == FolderSource.kind:
        return FolderSource.from_json(facts)
    source: Source = source_class(KINDS[kind]).from_json(facts)
    return source
