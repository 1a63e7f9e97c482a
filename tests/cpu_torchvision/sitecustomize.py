"""Lets PyPI's torchvision, which is linked with CUDA, be imported beside a CPU build of torch.

Its compiled operators do not load there, and the import fails over two that are not declared. Transforms use none of
them; the operators stay without code, so whatever calls one fails. On the path of recipes under test only.
"""

from importlib.util import find_spec
from pathlib import Path

import torch

found = find_spec("torchvision")
if found is not None and found.origin is not None:
    try:
        torch.ops.load_library(Path(found.origin).with_name("_C.so"))
    except OSError:
        declared = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            declared.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
