"""Raw files as a well-made training script loads them: a Dataset that decodes, resizes and maps, in workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader, Dataset

from packer.decoding.decode import decode_image, decode_label
from packer.pixels.class_lookup import Lookup
from packer.pixels.label_codec import LabelCodec
from packer.pixels.label_rules import COLOUR, INDEX
from packer.pixels.nearest_lines import nearest_source
from readers import Order
from train_demo.packed import Packed

PREFETCH = 4


class RawPairs(Dataset[Any]):
    """The rows of a pack, decoded from the raw files again by the packer's own decoders, with the same pixels.

    It is faster than the packer: it hashes and counts nothing, and it shrinks labels before the table look-up if they
    are only stretched.
    """

    def __init__(self, packed: Packed) -> None:
        self._packed = packed
        self._lookup: Callable[[NDArray[Any]], NDArray[Any]] | None = None
        rules, table = packed.label_rules, packed.classes
        self._codec = LabelCodec(table, rules, packed.recipe.max_pixels)
        self._as_index = rules.codec == INDEX
        if packed.recipe.geometry.fit == "stretch" and rules.codec in (INDEX, COLOUR) and rules.unknown == "error":
            self._lookup = Lookup(table).values if self._as_index else Lookup(table).colours

    def __len__(self) -> int:
        return len(self._packed.pieces)

    def __getitem__(self, row: int) -> tuple[torch.Tensor, torch.Tensor]:
        piece, recipe = self._packed.pieces[row], self._packed.recipe
        image = decode_image((self._packed.raw / piece.ref.parts[0]).read_bytes(), recipe.image_rules)
        planes = recipe.geometry.image(image, piece.origin)
        label = self._shrunk((self._packed.raw / piece.ref.parts[1]).read_bytes())
        if label is None:
            label = self._codec.decode((self._packed.raw / piece.ref.parts[1]).read_bytes())
        index = recipe.geometry.label(label, piece.origin).astype(self._packed.classes.index_dtype)
        return torch.from_numpy(planes), torch.from_numpy(index)

    def _shrunk(self, data: bytes) -> NDArray[Any] | None:
        """Return the classes of the pixels that are kept, or None if the label needs the packer's codec."""
        size = self._packed.recipe.geometry.size
        if self._lookup is None or size is None:
            return None
        pixels = decode_label(data, self._as_index)
        if pixels.ndim == 3 and self._as_index:  # gray that was saved as RGB
            return None
        rows, columns = (nearest_source(pixels.shape[side], size[side]) for side in (0, 1))
        return self._lookup(pixels.take(rows, axis=0).take(columns, axis=1))


def raw_loader(packed: Packed, batch: int, workers: int, order: Order, pinned: bool) -> DataLoader[Any]:
    """Return the stock DataLoader, set up for speed."""
    more: dict[str, Any] = {}
    if workers:
        more = {"persistent_workers": True, "prefetch_factor": PREFETCH, "worker_init_fn": _single_thread}
    return DataLoader(
        RawPairs(packed), batch, sampler=order, num_workers=workers, drop_last=True, pin_memory=pinned, **more
    )


def _single_thread(worker: int) -> None:
    """Use one thread in each worker: more threads would wait for each other."""
    cv2.setNumThreads(0)
