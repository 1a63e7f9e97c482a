"""The scripts that people write to store decoded pairs: `bench.building_users` runs each as a command of its own.

tools/run bench.user_scripts NAME RAW PAIRS WORKERS OUT
"""

from __future__ import annotations

import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from scenes.camera import image_path, label_path
from scenes.street import CLASSES, Pixels

SIZE = (512, 512)
COLOURS = np.array(list(CLASSES.values()), np.uint8)
TAR_PAIRS = 100
Decode = Callable[[Path, int], tuple[Pixels, Pixels]]


def main() -> None:
    name, raw, pairs, workers, out = sys.argv[1:]
    Path(out).mkdir()
    SCRIPTS[name](Path(raw), Path(out), int(pairs), int(workers))


@contextmanager
def mapping(workers: int) -> Iterator[Callable[..., Any]]:
    """Yield `map`, or that of a pool of processes."""
    if workers == 1:
        yield map
        return
    with Pool(workers) as pool:
        yield partial(pool.imap, chunksize=8)


def pillow_npy(raw: Path, out: Path, pairs: int, workers: int) -> None:
    with mapping(workers) as mapped:
        list(mapped(partial(save_npy, raw, out), range(pairs)))


def save_npy(raw: Path, out: Path, number: int) -> None:
    from PIL import Image

    image = Image.open(image_path(raw, number)).convert("RGB").resize(SIZE, Image.Resampling.BILINEAR)
    label = Image.open(label_path(raw, number)).resize(SIZE, Image.Resampling.NEAREST)
    np.save(out / f"{number}_image.npy", np.array(image))
    np.save(out / f"{number}_label.npy", classes_of(np.array(label)))


def cv2_h5py(raw: Path, out: Path, pairs: int, workers: int) -> None:
    import h5py

    with h5py.File(out / "pairs.h5", "w") as file, mapping(workers) as mapped:
        images = file.create_dataset("images", (pairs, *SIZE, 3), "uint8")
        labels = file.create_dataset("labels", (pairs, *SIZE), "uint8")
        for row, (image, label) in enumerate(mapped(partial(decode, raw), range(pairs))):
            images[row], labels[row] = image, label


def cv2_lmdb(raw: Path, out: Path, pairs: int, workers: int) -> None:
    import lmdb

    with lmdb.open(str(out), map_size=1 << 40) as store, store.begin(write=True) as rows, mapping(workers) as mapped:
        for row, (image, label) in enumerate(mapped(partial(decode, raw), range(pairs))):
            rows.put(f"{row:08}".encode(), image.tobytes() + label.tobytes())


def tar_of_jpeg(raw: Path, out: Path, pairs: int, workers: int) -> None:
    with mapping(workers) as mapped:
        list(mapped(partial(write_tar, raw, out, pairs), range(0, pairs, TAR_PAIRS)))


def write_tar(raw: Path, out: Path, pairs: int, first: int) -> None:
    with tarfile.open(out / f"{first:08}.tar", "w") as tar:
        for number in range(first, min(pairs, first + TAR_PAIRS)):
            image, label = decode(raw, number)
            for suffix, pixels in ((".jpg", image[..., ::-1]), (".png", label)):
                data = cv2.imencode(suffix, pixels)[1].tobytes()
                entry = tarfile.TarInfo(f"{number:08}{suffix}")
                entry.size = len(data)
                tar.addfile(entry, BytesIO(data))


def decode(raw: Path, number: int) -> tuple[Pixels, Pixels]:
    image = cv2.cvtColor(read(image_path(raw, number), cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)
    label = read(label_path(raw, number), cv2.IMREAD_UNCHANGED)
    if label.ndim == 3:
        label = cv2.cvtColor(label, cv2.COLOR_BGR2RGB)  # type: ignore[assignment]
    small: Pixels = cv2.resize(label, SIZE, interpolation=cv2.INTER_NEAREST)  # type: ignore[assignment]
    return cv2.resize(image, SIZE, interpolation=cv2.INTER_AREA), classes_of(small)  # type: ignore[return-value]


def read(path: Path, flags: int) -> Pixels:
    pixels = cv2.imread(str(path), flags)
    assert pixels is not None, path
    return np.asarray(pixels, np.uint8)


def classes_of(label: Pixels) -> Pixels:
    """Compare colours with that of each class; class numbers stay as they are."""
    if label.ndim == 2:
        return label
    index = np.full(label.shape[:2], 255, np.uint8)
    for number, colour in enumerate(COLOURS):
        index[(label == colour).all(axis=-1)] = number
    return index


SCRIPTS = {script.__name__: script for script in (pillow_npy, cv2_h5py, cv2_lmdb, tar_of_jpeg)}
