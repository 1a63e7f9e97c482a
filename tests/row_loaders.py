"""Functions for `Rows`, light to import: worker processes open them from this module."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.stores.heard import tell_of_wait

HEIGHT, WIDTH, CLASSES = 20, 30, 3


def scene_of(key: object, height: int = HEIGHT, width: int = WIDTH) -> dict[str, NDArray[Any]]:
    """Return an image and class numbers that depend on the key alone."""
    rng = np.random.default_rng(list(repr(key).encode()))
    image = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    return {"image": image, "label": rng.integers(0, CLASSES, (height, width))}


def waiting_scene(key: object) -> dict[str, NDArray[Any]]:
    """Return a scene, for which a store was busy."""
    tell_of_wait("s3://bucket/raw: status 503", 150.0)
    return scene_of(key)


@dataclass(frozen=True)
class Changed:
    """Scenes, some of which changed: `seeds` has another key in the place of theirs."""

    seeds: Mapping[str, str] = field(default_factory=dict)

    def load(self, key: str) -> dict[str, NDArray[Any]]:
        return scene_of(self.seeds.get(key, key))

    def version(self, key: str) -> str:
        return self.seeds.get(key, key)


@dataclass(frozen=True)
class Unlabelled:
    """Scenes, of which some have no label."""

    keys: frozenset[object]

    def load(self, key: object) -> dict[str, NDArray[Any]]:
        scene = scene_of(key)
        return {"image": scene["image"]} if key in self.keys else scene

    def version(self, key: object) -> int:
        return 1


@dataclass(frozen=True)
class Hostile:
    """Scenes, but at some keys it crashes, hangs or exits."""

    acts: Mapping[str, str]
    folder: Path | None = None
    """Counts the calls of each key, one file a call."""

    def load(self, key: str) -> dict[str, NDArray[Any]]:
        if self.folder is not None:
            (self.folder / f"{key}.{time.monotonic_ns()}").touch()
        act = self.acts.get(key)
        if act == "exit":
            os._exit(3)
        elif act == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        elif act == "hang":
            time.sleep(600)
        elif act == "sys.exit":
            raise SystemExit(3)
        return scene_of(key)


class OneBuffer:
    """Fills the same arrays with each row."""

    def __init__(self) -> None:
        self._scene: dict[str, NDArray[Any]] = {
            "image": np.empty((HEIGHT, WIDTH, 3), np.uint8),
            "label": np.empty((HEIGHT, WIDTH), np.int64),
        }

    def load(self, key: str) -> dict[str, NDArray[Any]]:
        for name, pixels in scene_of(key).items():
            self._scene[name][...] = pixels
            time.sleep(0.001)
        return self._scene
