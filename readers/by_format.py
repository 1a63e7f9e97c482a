"""A data set class for each format, and `open_dataset`, which picks the right one."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from readers.contract.errors import RequestError
from readers.dataset import SegDataset, View
from readers.delivered import Forms, LabelForm, forms_of
from readers.location import CacheBytes, Location, Verify
from readers.samples import Transform


class ArrowSegDataset(SegDataset):
    """A data set packed with `--format arrow`."""

    storage = "arrow"


class Hdf5SegDataset(SegDataset):
    """A data set packed with `--format hdf5`."""

    storage = "hdf5"


class LmdbSegDataset(SegDataset):
    """A data set packed with `--format lmdb`."""

    storage = "lmdb"


class NpySegDataset(SegDataset):
    """A data set packed with `--format npy`."""

    storage = "npy"


DATASETS: dict[str, type[SegDataset]] = {
    "arrow": ArrowSegDataset,
    "hdf5": Hdf5SegDataset,
    "lmdb": LmdbSegDataset,
    "npy": NpySegDataset,
}


def open_dataset(
    root: str | os.PathLike[str],
    split: str | None = None,
    label: LabelForm | None = None,
    transform: Transform | None = None,
    verify: Verify | None = None,
    staged: bool = True,
    fields: Sequence[str] | None = None,
    labelled: bool | None = None,
    form: Forms | None = None,
    cache: str | os.PathLike[str] | None = None,
    cache_bytes: CacheBytes | None = None,
    generation: int | None = None,
    fold: int | None = None,
    offline: bool | None = None,
    pack: str | os.PathLike[str] | None = None,
    **build: Any,
) -> SegDataset:
    """Open the data set packed at `root`, in any format.

    `split`: its name, or "all" for every row; can be left out if there is only one. `label`: "onehot" (C,H,W) or
    "index" (H,W), by default as stored. `transform(image, label)`: applied to each sample; its result is the sample.
    `verify`: "digest" compares the files of each shard with their BLAKE3 before the shard is first opened.
    `staged`: whether to look for a copy of the same generation made by `packer stage`, and read that.
    `fields`: the names of what is read, in the order of samples, batches and arguments of `transform`; by default
    ("image", "label"). Samples of other fields are tuples without names. `labelled`: True for only the rows that have a
    label, False for only those without; by default all, and every pixel of a label that is missing is ignored.
    `form={"parts": "planes"}`: the form of any field; classes are "onehot" or "index", multilabels "planes" or "bits".
    `cache`: a folder of this machine that gets whole shards when they are needed, for a `root` such as
    "s3://bucket/out" or a slow mount. `cache_bytes`: the most bytes that it may have, such as "200GB"; by default nine
    tenths of what is free. `generation`: an earlier one that is kept, or the one that all ranks shall read. `offline`:
    True asks no store and reads what the cache has, False never does without the store; by default the cache serves
    while a store does not answer, with a warning that says which generation it has, and how old.
    `fold=0`: of a pack that was built with --folds, `split="train"` is all rows to train on in this fold, and
    `split="val"` those to validate on.
    `pack="out/"`: `root` is a raw folder, which is packed there while it is read: training begins at once, and what it
    needs next is built first. Any other option is one of `packer build`, such as `size=(512, 512)`; those with the name
    of an option here are in `options={"label": …}`.
    """
    if pack is not None:
        opening = {"verify": verify, "cache": cache, "cache_bytes": cache_bytes, "generation": generation}
        opening["offline"] = offline
        location = _live_location(root, pack, opening, {**build.pop("options", {}), **build})
    elif build:
        raise TypeError(f"open_dataset() has no option {next(iter(build))!r}; options of a build need pack=")
    else:
        location = Location.of(root, verify, staged, cache, cache_bytes, generation, offline)
    opened = location.open()
    dataset = object.__new__(DATASETS[opened.manifest.storage])  # its __init__ would open the pack once more
    dataset._open(location, opened, View(split, fold, fields, forms_of(label, form), labelled), transform)
    return dataset


def _live_location(
    raw: str | os.PathLike[str],
    pack: str | os.PathLike[str],
    opening: Mapping[str, object],
    options: Mapping[str, object],
) -> Location:
    """Return the location of a pack that is built while it is read."""
    from readers.live_build import LiveBuild  # most data sets are packed
    from readers.stores.open_store import is_url

    wrong = [f"{name}= is for packs that are built" for name, value in opening.items() if value is not None]
    if is_url(os.fspath(pack)):
        wrong = [f"pack={pack!r}"]
    if wrong:
        raise RequestError(f"{wrong[0]}: pack= is a folder of this machine, in which {raw} is packed while it is read")
    folder = Location(str(Path(pack).absolute()), None, staged=False)
    return replace(folder, live=LiveBuild.of(raw, options))
