"""Train a small network with Keras: with a PyDataset over PNG files, and with a pack.

tools/run trainers.keras_fit [--folder FOLDER]
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scenes.numbered import IGNORED, NAMES, pack_numbered, write_numbered

from readers.by_format import open_dataset
from trainers.comparison import Comparison, Epoch, compared, report

os.environ.setdefault("KERAS_BACKEND", "torch")
import keras

from readers.bridges.keras import PackSequence

EPOCHS = 3
BATCH = 2


class FileBatches(keras.utils.PyDataset):
    """Pictures and labels of files, as the examples of Keras read them."""

    def __init__(self, folder: Path, flip: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.labels = sorted((folder / "labels").iterdir())
        self.images, self.flip = [folder / "images" / label.name for label in self.labels], flip

    def __len__(self) -> int:
        return -(-len(self.labels) // BATCH)

    def __getitem__(self, index: int) -> tuple[NDArray[Any], NDArray[Any]]:
        part = slice(index * BATCH, (index + 1) * BATCH)
        load = keras.utils.load_img
        images = np.stack([keras.utils.img_to_array(load(path)) for path in self.images[part]])
        labels = np.stack([np.array(load(path, color_mode="grayscale"), np.uint8) for path in self.labels[part]])
        if self.flip and np.random.default_rng(index).random() < 0.5:
            images, labels = images[:, :, ::-1], labels[:, :, ::-1]
        return images, labels


def prepare(folder: Path) -> tuple[Path, Path]:
    """Write the pictures, and pack them."""
    raw, pack = folder / "raw", folder / "pack"
    write_numbered(raw)
    pack_numbered(raw, pack)
    return raw, pack


def model() -> Any:
    """Return a network of three convolutions."""
    pixels = keras.Input((None, None, 3))
    scaled = keras.layers.Rescaling(1 / 255)(pixels)
    small = keras.layers.Conv2D(16, 3, 2, "same", activation="relu")(scaled)
    large = keras.layers.Conv2DTranspose(16, 3, 2, "same", activation="relu")(small)
    return keras.Model(pixels, keras.layers.Conv2D(len(NAMES), 3, padding="same")(large))


def learn(train: Any, val: Any) -> tuple[list[float], float]:
    """Return the loss of each epoch, and the mean IoU of Keras."""
    keras.utils.set_random_seed(0)
    network = model()
    network.compile(
        keras.optimizers.Adam(0.02),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=IGNORED),
        metrics=[keras.metrics.MeanIoU(len(NAMES), ignore_class=IGNORED, sparse_y_pred=False, name="iou")],
    )
    history = network.fit(train, epochs=EPOCHS, validation_data=val, shuffle=False, verbose=0).history
    return history["loss"], float(history["val_iou"][-1])


def compare(folder: Path) -> Comparison:
    """Compare the batches of an epoch, and train from both in the order of the files."""
    raw, pack = prepare(folder)
    opened = {split: open_dataset(pack, split=split, label="index") for split in ("train", "val")}
    pairs = [*zip(FileBatches(raw / "train"), PackSequence(opened["train"], BATCH), strict=True)]
    trained = {
        "own": learn(FileBatches(raw / "train"), FileBatches(raw / "val")),
        "pack": learn(PackSequence(opened["train"], BATCH), PackSequence(opened["val"], BATCH)),
    }
    return compared(
        "Keras",
        keras.version(),
        samples=sum(len(own[0]) for own, _ in pairs),
        images=[(own[0], packed[0]) for own, packed in pairs],
        labels=[(own[1], packed[1]) for own, packed in pairs],
        runs=trained,
        metric="val MeanIoU",
        ignored=IGNORED,
        note=f"backend {keras.backend.backend()}; the pack gives bytes, and Keras makes floats of them",
    )


def loaders(folder: Path) -> dict[str, Epoch]:
    """Return an epoch of each, mirrored at random."""
    raw, pack = prepare(folder)
    train = open_dataset(pack, split="train", label="index")
    return {
        "own": lambda: FileBatches(raw / "train", flip=True),
        "own, 2 workers": lambda: _enqueued(FileBatches(raw / "train", flip=True, workers=2, use_multiprocessing=True)),
        "pack": lambda: PackSequence(train, BATCH, shuffle=True, flip=True),
    }


def _enqueued(batches: Any) -> Iterable[object]:
    """Return an epoch as `fit` reads it, with the workers of the data set."""
    from keras.src.trainers.data_adapters.py_dataset_adapter import PyDatasetAdapter

    adapter = PyDatasetAdapter(batches)
    adapter.on_epoch_begin()
    yield from adapter.get_torch_dataloader()
    adapter.on_epoch_end()


def main() -> None:
    report(compare, __doc__)


if __name__ == "__main__":
    main()
