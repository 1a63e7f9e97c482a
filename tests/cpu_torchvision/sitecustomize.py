"""Let the torchvision of PyPI, which is linked with CUDA, be imported with a CPU build of torch.

Its compiled operators do not load there, and the import fails over two that are not declared. `nms` is written here in
PyTorch, because detectors need it; `qnms` has no code, so whatever calls it fails; `roi_align` has a form in PyTorch in
torchvision. On the path of the recipes and trainers under test only.
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
        if name == "torchvision" and not KEPT:  # looked for once more when it is imported
            _declare(PathFinder.find_spec(name))
        elif name == "torchvision.ops":
            sys.meta_path.remove(self)
            if KEPT:  # its functions would ask whether compiled operators are there
                sys.modules["torchvision.extension"]._assert_has_ops = lambda: None  # type: ignore[attr-defined]


def _declare(torchvision: Any) -> None:
    torch: Any = import_module("torch")

    if torchvision is not None:
        try:
            torch.ops.load_library(Path(torchvision.origin).with_name("_C.so"))
        except OSError:
            KEPT.append(torch.library.Library("torchvision", "DEF"))
            for operator in ("nms", "qnms"):
                KEPT[0].define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            KEPT[0].impl("nms", _nms, "CPU")


def _nms(dets: Any, scores: Any, iou_threshold: float) -> Any:
    """Keep the boxes of the highest scores that overlap no kept box by more than the threshold."""
    torch: Any = import_module("torch")

    left, top, right, bottom = dets.unbind(1)
    areas = (right - left) * (bottom - top)
    order, kept = scores.argsort(descending=True, stable=True), []
    while len(order):
        best, others = order[0], order[1:]
        kept.append(best)
        width = torch.minimum(right[others], right[best]) - torch.maximum(left[others], left[best])
        height = torch.minimum(bottom[others], bottom[best]) - torch.maximum(top[others], top[best])
        inside = width.clamp(min=0) * height.clamp(min=0)
        order = others[inside / (areas[others] + areas[best] - inside) <= iou_threshold]
    return torch.stack(kept) if kept else order


sys.meta_path.insert(0, _Declares())
