"""MLflow: the packs of a training as inputs of its run, and the whole receipt as an artifact.

from readers.bridges.mlflow import log_input

with mlflow.start_run():
    log_input(loader.receipt())
"""

from __future__ import annotations

from typing import Any

import mlflow
from mlflow.data.dataset_source import DatasetSource
from mlflow.data.meta_dataset import MetaDataset

from readers.by_format import open_dataset
from readers.contract.errors import RequestError
from readers.dataset import SegDataset
from readers.training_receipt import packs_of

MOST_DIGEST = 36
"""The characters of a digest that MLflow keeps."""


class GenerationSource(DatasetSource):
    """A generation of a pack; `load` opens its rows."""

    def __init__(self, uri: str, generation: int, split: str, fold: int | None = None) -> None:
        self.uri, self.generation, self.split, self.fold = uri, generation, split, fold

    @staticmethod
    def _get_source_type() -> str:
        return "segpack"

    def load(self) -> SegDataset:
        """Return the rows of the training, of its generation."""
        return open_dataset(self.uri, self.split, generation=self.generation, fold=self.fold)

    @staticmethod
    def _can_resolve(raw_source: object) -> bool:
        return False

    @classmethod
    def _resolve(cls, raw_source: object) -> GenerationSource:
        raise RequestError(f"{raw_source}: give log_input what receipt() returns")

    def to_dict(self) -> dict[str, Any]:
        return {"uri": self.uri, "generation": self.generation, "split": self.split, "fold": self.fold}

    @classmethod
    def from_dict(cls, source_dict: dict[str, Any]) -> GenerationSource:
        return cls(**source_dict)


def log_input(receipt: dict[str, Any], context: str | None = None) -> None:
    """Log the packs of a receipt as inputs of the active run, and the receipt as CONTEXT-receipt.json.

    The digest of an input is the start of the checksum in manifest.json. `context` is the split by default.
    """
    for name, facts in packs_of(receipt).items():
        pack, split = facts["pack"], facts["split"]
        source = GenerationSource(pack["root"], pack["generation"], split, facts.get("fold"))
        mlflow.log_input(MetaDataset(source, f"{name}-{split}", pack["manifest"][:MOST_DIGEST]), context or split)
    mlflow.log_dict(receipt, f"{context or receipt.get('split', 'packs')}-receipt.json")
