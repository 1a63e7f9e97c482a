"""Receipts of trainings: the pack, the rows and the options as a small dictionary, to be kept next to a checkpoint.

It is JSON: texts, numbers, lists, dictionaries. `readers.bridges` has what gives it to MLflow, Weights & Biases and
DVC.
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from readers.contract import VERSION
from readers.contract.atomic import write_atomic
from readers.contract.errors import RequestError
from readers.contract.fields import Field
from readers.contract.json_entry import fingerprint

if TYPE_CHECKING:
    from readers.dataset import SegDataset

FORM = 1
"""The form of the dictionary: a later release that changes it counts on."""
MOST_SHOWN = 80
"""The characters of a wrong receipt in a message."""


def dataset_receipt(dataset: SegDataset, root: str, transform: object) -> dict[str, Any]:
    """Return the receipt of a data set that was opened at `root`: the generation and the rows that it reads."""
    manifest = dataset.manifest
    pack = {
        "root": root,
        "generation": manifest.generation,
        "manifest": manifest.identity,
        "created": manifest.created,
        "storage": manifest.storage,
        "recipe": fingerprint(dict(manifest.recipe)),
        "rows": manifest.rows,
    }
    facts = {"pack": pack, "split": dataset.split, "rows": len(dataset), "fields": fields_facts(dataset.fields)}
    if dataset.fold is not None:
        facts["fold"] = dataset.fold
    if dataset.labelled is not None:
        facts["labelled"] = dataset.labelled
    if transform is not None:
        facts["transform"] = plain(transform)
    return {"receipt": FORM, **facts, "versions": versions()}


def mixed_receipt(datasets: Mapping[str, SegDataset], weights: Mapping[str, int], **facts: object) -> dict[str, Any]:
    """Return the receipt of several packs: the receipt of each with its share."""
    total = sum(weights.values())
    packs: dict[str, Any] = {}
    others = {name: plain(fact) for name, fact in facts.items()}
    for name, dataset in datasets.items():
        receipt = dataset.receipt()
        own = {key: fact for key, fact in receipt.items() if key not in ("receipt", "versions")}
        packs[name] = {**own, "share": str(Fraction(weights[name], total))}
    return {
        "receipt": FORM,
        "packs": packs,
        **others,
        "versions": versions(),
    }


def packs_of(receipt: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the facts of each pack of a receipt by its name, which of a single one is the last part of its path."""
    if not {"pack", "packs"} & set(receipt):
        raise RequestError(f"expected what receipt() returns, found {str(receipt)[:MOST_SHOWN]}")
    if "packs" in receipt:
        return dict(receipt["packs"])
    return {receipt["pack"]["root"].rstrip("/").rpartition("/")[2]: receipt}


def write_receipt(receipt: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a receipt as JSON, such as next to a checkpoint: the whole file, or none."""
    write_atomic(Path(path), json.dumps(receipt, indent=1, ensure_ascii=False) + "\n")


def versions() -> dict[str, str]:
    """Return the versions of what decides the numbers of a batch."""
    return {
        "segpack": VERSION,
        "numpy": np.__version__,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
    }


def fields_facts(delivered: Sequence[Field]) -> dict[str, str]:
    """Return the form of each delivered field, such as `uint8 index`."""
    return {
        field.name: f"{np.dtype(field.dtype).name}{f' {field.form}' if field.classes is not None else ''}"
        for field in delivered
    }


def options_facts(**options: object) -> dict[str, Any]:
    """Return the options of a loader that are set."""
    return {name: plain(option) for name, option in options.items() if option is not None and option is not False}


def plain(option: object) -> Any:
    """Return an option as JSON has it: an object of ours as its name and its fields, a function as its name."""
    if isinstance(option, float):
        return option if math.isfinite(option) else str(option)
    if option is None or isinstance(option, (bool, int, str)):
        return option
    if is_dataclass(option) and not isinstance(option, type):
        chosen = {field.name: getattr(option, field.name) for field in fields(option) if field.repr}
        return {"type": type(option).__name__, **options_facts(**chosen)}
    if isinstance(option, Mapping):
        return {str(name): plain(part) for name, part in option.items()}
    if isinstance(option, (list, tuple)):
        return [plain(part) for part in option]
    if hasattr(option, "tolist"):
        return plain(option.tolist())
    if isinstance(option, (torch.dtype, Fraction)):
        return str(option)
    name = getattr(option, "__qualname__", None) or type(option).__qualname__
    return f"{getattr(option, '__module__', '')}.{name}"
