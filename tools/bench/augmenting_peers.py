"""Other libraries that scale, crop, flip and colour rows of 1024x2048 to 512x1024 bytes.

All draw a scale from 0.5 to 2, a place, a flip, three factors: evenly, but Kornia and Albumentations draw the shown
area evenly, so their windows show about twice as much of a picture as ours and cost more to read. A window of a
scaled picture is made of the part of the picture that it shows, and only that is resized, between two neighbours a
side; each row has numbers of its own.

torchvision: `resized_crop` and ColorJitter for each row, on tensors of bytes as its docs recommend, with channels last
to resize; a call for a batch would draw once. Kornia: AugmentationSequential on batches of floats, which draws for each
row. Albumentations: its own RandomResizedCrop. DALI: a region of interest of `fn.resize`, which makes only that.
OpenCV: what a careful person writes by hand: two threads, arrays that are used again, one matrix for all colours.
All but Kornia read rows that are stored with channels last, and all but Kornia and torchvision deliver them so,
which PyTorch takes as channels_last.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, cycle
from typing import Any

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader

from bench.augmenting_rows import HEIGHT, WIDTH, Pictures
from bench.streams import Batches
from readers.colour import GRAY

BATCH, WORKERS = 8, 2
WINDOW = (512, 1024)
SCALE, CHANGE = (0.5, 2.0), 0.3
AREA = tuple(1 / (2 * scale) ** 2 for scale in reversed(SCALE))
"""The shares of a picture that windows show."""


@dataclass(frozen=True)
class Draw:
    """The part of a row that becomes its window, whether it is flipped, and the factors of its colours."""

    row: int
    top: int
    left: int
    height: int
    width: int
    flip: bool
    factors: tuple[float, float, float]

    @property
    def part(self) -> tuple[slice, slice]:
        return slice(self.top, self.top + self.height), slice(self.left, self.left + self.width)


def draws(rows: int, seed: int = 0) -> Iterator[Draw]:
    """Draw without end."""
    dice = np.random.default_rng(seed)
    while True:
        height, width = (round(side / scale) for scale in [dice.uniform(*SCALE)] for side in WINDOW)
        top, left = int(dice.integers(HEIGHT - height + 1)), int(dice.integers(WIDTH - width + 1))
        factors = 1 - CHANGE + 2 * CHANGE * dice.random(3)
        row, flip = int(dice.integers(rows)), bool(dice.integers(2))
        yield Draw(row, top, left, height, width, flip, tuple(factors.tolist()))


def batches_of(numbers: Iterator[Any]) -> Iterator[list[Any]]:
    while True:
        yield [next(numbers) for _ in range(BATCH)]


class Augmented(torch.utils.data.Dataset[Any]):
    """A data set for workers: asked for a draw, it returns the window."""

    def __init__(self, augment: Callable[[Draw], Any]) -> None:
        self.augment = augment

    def __getitem__(self, draw: Draw) -> Any:
        return self.augment(draw)


def in_workers(augment: Callable[[Draw], Any], rows: int) -> Iterator[Any]:
    """Yield batches from the workers of a DataLoader, each with one thread."""
    options: dict[str, Any] = {"num_workers": WORKERS, "multiprocessing_context": "fork"}
    options["worker_init_fn"] = lambda _: cv2.setNumThreads(0)
    return iter(DataLoader(Augmented(augment), BATCH, sampler=draws(rows), **options))


def torchvision_row(pictures: Pictures) -> Callable[[Draw], tuple[torch.Tensor, torch.Tensor]]:
    """Return the augmentation of one row."""
    from torchvision.transforms import InterpolationMode, v2
    from torchvision.transforms.v2 import functional

    jitter = v2.ColorJitter(CHANGE, CHANGE, CHANGE)
    images, labels = torch.from_numpy(pictures.images).permute(0, 3, 1, 2), torch.from_numpy(pictures.labels)

    def augment(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
        where = draw.top, draw.left, draw.height, draw.width, list(WINDOW)
        image = functional.resized_crop(images[draw.row], *where, antialias=False).contiguous()
        label = functional.resized_crop(labels[draw.row, None], *where, InterpolationMode.NEAREST_EXACT)[0]
        if draw.flip:
            image, label = functional.horizontal_flip(image), functional.horizontal_flip(label)
        return jitter(image), label

    return augment


def torchvision_batches(pictures: Pictures) -> Batches:
    augment = torchvision_row(pictures)
    for drawn in batches_of(draws(len(pictures.images))):
        images, labels = zip(*map(augment, drawn), strict=True)
        yield torch.stack(images), torch.stack(labels)


def torchvision_workers(pictures: Pictures) -> Batches:
    return in_workers(torchvision_row(pictures), len(pictures.images))


def in_one_thread(make: Callable[[Pictures], Batches], pictures: Pictures) -> Batches:
    """Yield batches for which PyTorch has one thread: with more, small calls wait for each other."""
    threads, batches = torch.get_num_threads(), make(pictures)
    while True:
        torch.set_num_threads(1)
        try:
            batch = next(batches)
        finally:
            torch.set_num_threads(threads)
        yield batch


def kornia_batches(pictures: Pictures) -> Batches:
    """Yield batches of bytes, as the others do, though Kornia counts in floats."""
    from kornia import augmentation
    from kornia.constants import Resample

    both = augmentation.AugmentationSequential(
        augmentation.RandomResizedCrop(WINDOW, scale=AREA, ratio=(2.0, 2.0), cropping_mode="slice"),
        augmentation.RandomHorizontalFlip(),
        augmentation.ColorJitter(CHANGE, CHANGE, CHANGE, 0.0),
        data_keys=["image", "mask"],
        extra_args={"mask": {"resample": Resample.NEAREST, "align_corners": None}},
    )
    loader = pictures.data.loader(BATCH, shuffle=True)
    for images, labels in chain.from_iterable(iter(lambda: loader, None)):
        images, masks = both(images.float() / 255, labels.unsqueeze(1).float())
        yield (images * 255).round_().to(torch.uint8), masks.squeeze(1).to(torch.uint8)


def albumentations_workers(pictures: Pictures) -> Batches:
    import albumentations

    both = albumentations.Compose(
        [
            albumentations.RandomResizedCrop(
                WINDOW, scale=AREA, ratio=(2.0, 2.0), mask_interpolation=cv2.INTER_NEAREST
            ),
            albumentations.HorizontalFlip(),
            albumentations.ColorJitter(*[(1 - CHANGE, 1 + CHANGE)] * 3, hue=(0, 0), p=1),
        ]
    )

    def augment(draw: Draw) -> tuple[NDArray[Any], NDArray[Any]]:
        done = both(image=pictures.images[draw.row], mask=pictures.labels[draw.row])
        return done["image"], done["mask"]

    for images, labels in in_workers(augment, len(pictures.images)):
        yield images.permute(0, 3, 1, 2), labels


def dali_batches(pictures: Pictures) -> Batches:
    """Yield what DALI makes, which it keeps until the next batch."""
    from nvidia.dali import fn, pipeline_def, types

    drawn = batches_of(draws(len(pictures.images)))

    def source() -> tuple[Any, ...]:
        batch = next(drawn)
        rows = [pictures.images[draw.row] for draw in batch], [pictures.labels[draw.row][..., None] for draw in batch]
        starts = np.array([(draw.top, draw.left + draw.flip * draw.width) for draw in batch], np.float32)
        ends = np.array(
            [(draw.top + draw.height, draw.left + (not draw.flip) * draw.width) for draw in batch], np.float32
        )
        return *rows, starts, ends, *np.array([draw.factors for draw in batch], np.float32).T.copy()

    @pipeline_def(batch_size=BATCH, num_threads=WORKERS, device_id=None)  # type: ignore[untyped-decorator]
    def augmented() -> Any:
        layouts = ["HWC", "HWC", *[""] * 5]
        images, labels, start, end, *factors = fn.external_source(source, 7, layout=layouts, no_copy=True)
        part = {"size": WINDOW, "roi_start": start, "roi_end": end, "antialias": False}  # it flips where start > end
        images = fn.resize(images, interp_type=types.INTERP_LINEAR, **part)
        brightness, contrast, saturation = factors
        images = fn.color_twist(images, brightness=brightness, contrast=contrast, saturation=saturation)
        return images, fn.resize(labels, interp_type=types.INTERP_NN, **part)

    pipeline = augmented()
    pipeline.build()
    while True:
        images, labels = (torch.utils.dlpack.from_dlpack(part.as_tensor()) for part in pipeline.run())
        yield images.permute(0, 3, 1, 2), labels[..., 0]


class OpenCvRow(threading.local):
    """The augmentation of one row by OpenCV, with memory of its own in each thread."""

    def __init__(self, pictures: Pictures) -> None:
        self.rows = pictures
        self.scaled, self.flipped = (np.empty((*WINDOW, 3), np.uint8) for _ in range(2))
        self.named = np.empty(WINDOW, np.uint8)

    def __call__(self, draw: Draw, image: NDArray[np.uint8], label: NDArray[np.uint8]) -> None:
        part, size = (draw.row, *draw.part), WINDOW[::-1]
        named, scaled = (self.named if draw.flip else label), self.scaled
        cv2.resize(self.rows.images[part], size, scaled, interpolation=cv2.INTER_LINEAR)
        cv2.resize(self.rows.labels[part], size, named, interpolation=cv2.INTER_NEAREST)
        if draw.flip:
            cv2.flip(scaled, 1, self.flipped)
            cv2.flip(named, 1, label)
        cv2.transform(self.flipped if draw.flip else scaled, matrix_of(*draw.factors), image)


def opencv_threads(pictures: Pictures) -> Batches:
    """Yield batches in memory that is used again, while two threads make the next one."""
    cv2.setNumThreads(1)
    memory = cycle([(np.empty((BATCH, *WINDOW, 3), np.uint8), np.empty((BATCH, *WINDOW), np.uint8)) for _ in range(3)])
    one, waiting = OpenCvRow(pictures), deque[tuple[Any, Any, list[Any]]]()
    with ThreadPoolExecutor(WORKERS) as threads:
        for drawn, (images, labels) in zip(batches_of(draws(len(pictures.images))), memory, strict=False):
            making = [threads.submit(one, *given) for given in zip(drawn, images, labels, strict=True)]
            waiting.append((images, labels, making))
            if len(waiting) == 2:
                images, labels, making = waiting.popleft()
                for each in making:
                    each.result()
                yield torch.from_numpy(images).permute(0, 3, 1, 2), torch.from_numpy(labels)


def matrix_of(brightness: float, contrast: float, saturation: float) -> NDArray[np.float32]:
    """Return the sums of red, green, blue and one that are the new colours."""
    mixed = saturation * np.eye(3) + (1 - saturation) * np.array([GRAY] * 3)
    return np.column_stack([brightness * contrast * mixed, np.full(3, 127.5 * (1 - contrast))]).astype(np.float32)
