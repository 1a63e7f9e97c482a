"""`UnpackedVolumes`: the bytes of the last volumes that were read whole, for the slices that are read next."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from packer.errors import BadPair, LostFile
from packer.sources.file_states import FileState
from packer.sources.volumes.volume import Volume

MOST_KEPT = 1 << 32
"""The bytes of all volumes that are kept, but always one volume besides the new one."""


class UnpackedVolumes:
    """Reads a file once for all of its slices. Threads share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[str, tuple[list[FileState], memoryview | str]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def bytes(self, volume: Volume, most: int) -> memoryview:
        """Return all bytes of a volume, and keep the bytes of the last `most` volumes.

        Raise BadPair for each slice of a volume that cannot be read.
        """
        path = str(volume.path)
        with self._lock:
            states = volume.states()
            kept = self._kept.pop(path, None)
            if kept is None or kept[0] != states:
                self._make_room(volume.header.size, most)
                kept = states, _read(volume)
                if volume.states() != states:
                    raise LostFile("changed while it was read; build again")
            self._kept[path] = kept
        if isinstance(kept[1], str):
            raise BadPair(kept[1])
        return kept[1]

    def _make_room(self, size: int, most: int) -> None:
        while len(self._kept) > 1:
            kept = sum(len(data) for _, data in self._kept.values())
            if len(self._kept) < most and kept + size <= MOST_KEPT:
                break
            self._kept.popitem(last=False)


def _read(volume: Volume) -> memoryview | str:
    """Return all bytes, or why they cannot be read."""
    try:
        return volume.all_bytes()
    except BadPair as bad:
        return str(bad)
