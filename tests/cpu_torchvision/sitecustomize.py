"""Lets the torchvision of PyPI, which is linked with CUDA, be imported beside a CPU build of torch.

Its compiled operators do not load there, and the import fails over two that are not declared. Transforms use none of
them; they are declared without code, so whatever calls one fails. On the path of the recipes under test only.
"""

import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path


class _Declares:
    """Asked before anybody else when a module is imported for the first time."""

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        if name == "torchvision":
            sys.meta_path.remove(self)  # type: ignore[arg-type]
            return _declared(PathFinder.find_spec(name))
        return None


def _declared(found: ModuleSpec | None) -> ModuleSpec | None:
    import torch

    if found is not None and found.origin is not None:
        try:
            torch.ops.load_library(Path(found.origin).with_name("_C.so"))
        except OSError:
            found.declared = torch.library.Library("torchvision", "DEF")  # type: ignore[attr-defined]  # kept alive
            for operator in ("nms", "qnms"):
                found.declared.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")  # type: ignore[attr-defined]
    return found


sys.meta_path.insert(0, _Declares())  # type: ignore[arg-type]
