"""nnU-Net v2: its preprocessed cases as a pack, which is resumed and gets new cases, and a trainer. Not for cascades.

nnUNetv2_plan_and_preprocess -d 1 --no_pp                            # plans only; then, in place of the preprocessing:
python docs/recipes/nnunet.py PACK [WORKERS]              # $nnUNet_preprocessed/Dataset001_NAME/nnUNetPlans_3d_fullres
nnUNet_extTrainer=FOLDER nnUNetv2_train 1 3d_fullres 0 -tr PackTrainer             # FOLDER has a copy of this file only
"""

import json
import os
import shutil
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from nnunetv2.paths import nnUNet_raw
from nnunetv2.preprocessing.cropping.cropping import crop_to_nonzero
from nnunetv2.preprocessing.resampling.default_resampling import compute_new_shape
from nnunetv2.training.dataloading.nnunet_dataset import nnUNetBaseDataset
from nnunetv2.training.nnUNetTrainer.nnUNetTrainer import nnUNetTrainer
from nnunetv2.utilities.plans_handling.plans_handler import PlansManager
from nnunetv2.utilities.utils import get_filenames_of_train_images_and_targets
from numpy.typing import NDArray

from packer import Rows, build_pack
from readers import SegDataset, open_dataset

OUTSIDE = 65535  # -1 in 16 bits: nnU-Net's mark where all channels are 0. The pack ignores it
TILES = "tiles-zstd:32x64x64"  # a window reads what it touches


class Cases:
    """The cases of a data set, preprocessed as the plans next to the pack say."""

    def __init__(self, pack: Path) -> None:
        plans, _, configuration = pack.name.partition("_")
        self.pack, self.plans = pack, PlansManager(str(pack.with_name(f"{plans}.json")))
        self.settings = self.plans.get_configuration(configuration)
        self.dataset = json.loads(pack.with_name("dataset.json").read_text())
        self.files = get_filenames_of_train_images_and_targets(str(Path(nnUNet_raw, pack.parent.name)))
        packed = PackedCases.get_identifiers(str(pack)) if (pack / "manifest.json").exists() else []
        self.lost = [case for case in packed if not properties_of(pack, case).exists()]

    def load(self, case: str) -> dict[str, NDArray[Any]]:
        files = self.files[case]
        preprocessor = self.settings.preprocessor_class(verbose=False)
        image, label, properties = preprocessor.run_case(
            files["images"], files["label"], self.plans, self.settings, self.dataset
        )
        truth = self.pack.with_name("gt_segmentations") / f"{case}{self.dataset['file_ending']}"  # for the validation
        truth.parent.mkdir(exist_ok=True)
        shutil.copy2(files["label"], truth)
        write_properties(properties_of(self.pack, case), {**properties, "size": label.shape[1:]})
        return {"image": np.moveaxis(image, 0, -1), "label": label[0].astype(np.uint16)}

    def version(self, case: str) -> str | None:
        """Return what a case depends on; None if its properties were lost, so that it is loaded again."""
        states = [Path(path).stat() for path in (*self.files[case]["images"], self.files[case]["label"])]
        files = [(state.st_size, state.st_mtime_ns) for state in states]
        facts = version("nnunetv2"), self.plans.plans, self.settings.configuration, self.dataset["labels"], files
        return None if case in self.lost else json.dumps(facts, sort_keys=True)

    def size(self, case: str) -> tuple[int, ...]:
        """Return the size after cropping and resampling. Images are read for it, one case at a time."""
        image, facts = self.plans.image_reader_writer_class().read_images(self.files[case]["images"])
        axes = self.plans.transpose_forward
        spacing = [facts["spacing"][axis] for axis in axes]
        cropped = crop_to_nonzero(image.transpose(0, *[axis + 1 for axis in axes]))[0]
        return tuple(compute_new_shape(cropped.shape[1:], spacing, [spacing[0], *self.settings.spacing][-3:]).tolist())

    def classes(self) -> list[str]:
        """Return the name of each number. Numbers that only regions have get one."""
        labels = self.plans.get_label_manager(self.dataset)
        names = {number: name for name, number in self.dataset["labels"].items() if isinstance(number, int)}
        last = max(*labels.all_labels, labels.ignore_label or 0)
        return [names.get(number, f"number {number}") for number in range(last + 1)]


def properties_of(pack: str | Path, case: str) -> Path:
    return Path(f"{pack}-properties", f"{case}.npz")


def write_properties(path: Path, properties: dict[str, Any]) -> None:
    """Write properties as JSON, and the places of each class as an array. nnU-Net's pickle would run as a program."""
    places = {json.dumps(key): np.asarray(found, np.int32) for key, found in properties["class_locations"].items()}
    others = {name: fact for name, fact in properties.items() if name != "class_locations"}
    path.parent.mkdir(exist_ok=True)
    with (new := path.with_suffix(f".{os.getpid()}")).open("wb") as file:
        np.savez_compressed(file, properties=json.dumps(others, default=lambda array: array.tolist()), **places)
    new.replace(path)


def read_properties(path: Path) -> dict[str, Any]:
    with np.load(path) as file:  # NumPy refuses pickle
        keys = {name: json.loads(name) for name in file.files if name != "properties"}
        places = {tuple(key) if isinstance(key, list) else key: file[name] for name, key in keys.items()}
        return {**json.loads(str(file["properties"])), "class_locations": places}


class Voxels:
    """A field of a case as nnU-Net wants it, (C,D,H,W). A slice reads its window of the pack only."""

    def __init__(self, data: SegDataset, row: int, channels: int) -> None:
        self.data, self.row, self.shape = data, row, (channels, *data.size(row))

    def __getitem__(self, slices: Any) -> NDArray[Any]:
        given = slices if isinstance(slices, tuple) else (slices,)
        sides = [range(side)[part] for side, part in zip(self.shape, given, strict=False)]
        sides += [range(side) for side in self.shape[len(sides) :]]
        start, size = [side.start for side in sides[1:]], [len(side) for side in sides[1:]]
        voxels = self.data.window(self.row, start, size)[0].numpy()
        if self.data.label is None:
            return voxels[given[0]]
        return np.where(voxels == self.data.classes.ignore_index, np.int16(-1), voxels.astype(np.int16))[None]


class PackedCases(nnUNetBaseDataset):
    """The cases of a pack for nnU-Net's loader, which names the pack as the folder."""

    def __init__(self, folder: str, identifiers: Any = None, previous: Any = None, **more: Any) -> None:
        if previous or any(more.values()):
            raise ValueError(f"{folder}: is a pack; the second stage of a cascade is not read from packs")
        self.image = open_dataset(folder, split="all", fields=("image",))
        self.label = open_dataset(folder, split="all", fields=("label",), label="index")
        self.rows = {self.image.key(row): row for row in range(len(self.image))}
        super().__init__(folder, list(self.rows if identifiers is None else identifiers))

    def load_case(self, identifier: str) -> tuple[Voxels, Voxels, None, dict[str, Any]]:
        row = self.rows[identifier]
        properties = read_properties(path := properties_of(self.source_folder, identifier))
        if tuple(properties["size"]) != tuple(self.image.size(row)):
            raise ValueError(f"{path}: belongs to another build than the pack; pack again")
        (channels,) = self.image.fields[0].planes
        return Voxels(self.image, row, channels), Voxels(self.label, row, 1), None, properties

    @staticmethod
    def get_identifiers(folder: str) -> list[str]:
        return list(PackedCases(folder).rows)

    @staticmethod
    def save_case(*_: Any) -> None:
        raise TypeError("cases are written by: python docs/recipes/nnunet.py PACK")


class PackTrainer(nnUNetTrainer):
    def initialize(self) -> None:
        with patch(f"{nnUNetTrainer.__module__}.infer_dataset_class", lambda _: PackedCases):
            super().initialize()


if __name__ == "__main__":
    pack, workers = Path(sys.argv[1]).absolute(), int((*sys.argv[2:], 2)[0])
    cases = Cases(pack)
    channels = len(cases.dataset["channel_names"])
    types = {"image": np.zeros((1, 1, 1, channels), np.float32), "label": np.zeros((1, 1, 1), np.uint16)}
    rows = Rows(sorted(cases.files), cases.load, cases.version, cases.size, types=types)
    options = {"classes": cases.classes(), "ignore": [str(OUTSIDE)], "labels": "index", "volumes": True}
    encode = [f"{field}={TILES}" for field in ("image", "label")]
    # a shard for each case: a build that was killed goes on with the next case, and a new case is the only one read
    summary = build_pack(rows, pack, encode=encode, shard_size="1KB", workers=workers, **options)
    print(f"{summary.rows} cases, {summary.reused} as before; {summary.rejects or 'none refused'}")
