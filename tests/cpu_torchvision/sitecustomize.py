"""Let the torchvision of PyPI, which is linked with CUDA, be imported with a CPU build of torch.

Its compiled operators do not load there, and the import fails over two that are not declared. Transforms use none of
them; they are declared without code, so whatever calls one fails. On the path of the recipes under test only.
"""

import sys
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

KEPT: list[Any] = []
"""Declarations last as long as the object that made them."""


class _Declares:
    """Asked before anybody else when a module is looked for: torch is loaded only where torchvision is."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "torchvision":
            sys.meta_path.remove(self)
            _declare(PathFinder.find_spec(name))


def _declare(torchvision: Any) -> None:
    torch: Any = import_module("torch")

    if torchvision is not None:
        try:
            torch.ops.load_library(Path(torchvision.origin).with_name("_C.so"))
        except OSError:
            KEPT.append(torch.library.Library("torchvision", "DEF"))
            for operator in ("nms", "qnms"):
                KEPT[0].define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


sys.meta_path.insert(0, _Declares())
