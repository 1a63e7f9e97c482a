"""Open a source in a worker, from the text that the source gave of itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from typing import Any

from packer.recipe.source import Source
from packer.sources.containers import CONTAINERS
from packer.sources.folder import FolderSource
from packer.sources.nifti_whole import NiftiVolumes
from packer.sources.objects import ObjectsSource
from packer.sources.pack import PackSource
from packer.sources.rows import Rows

KINDS: dict[str, Callable[[dict[str, Any]], Source]] = {
    FolderSource.kind: FolderSource.from_json,
    NiftiVolumes.kind: NiftiVolumes.from_json,
    ObjectsSource.kind: ObjectsSource.from_json,
    PackSource.kind: PackSource.from_json,
    Rows.kind: Rows.from_json,
    **{container.kind: container.from_json for container in CONTAINERS},
}
ANNOTATED = {"annotated": "AnnotatedSource", "indexed": "IndexedSource"}
"""The kinds of sources of annotations: a module of this folder, imported when one is opened, and its class."""


def reader_of(text: str) -> str:
    """Name what reads a row of the source with this text, for the reason of a crash; of none it is a decoder."""
    is_function = bool(text) and json.loads(text)["kind"] == Rows.kind
    return "the process that ran load()" if is_function else "the decoder"


def reopen(text: str) -> Source:
    """Return the source that gave this text."""
    facts = json.loads(text)
    kind = facts["kind"]
    if kind not in ANNOTATED:
        return KINDS[kind](facts)
    source: Source = getattr(import_module(f"packer.sources.{kind}"), ANNOTATED[kind]).from_json(facts)
    return source
