"""`Gpu`: how busy the driver says the GPU is, where there is one and nvidia-ml-py is installed."""

from __future__ import annotations

from typing import Any

import torch

try:
    import pynvml
except ImportError:  # then only its events tell
    pynvml = None


class Gpu:
    """The device that PyTorch uses; `of_torch` finds it."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    @classmethod
    def of_torch(cls) -> Gpu | None:
        """None while PyTorch uses no GPU, or where nothing tells how busy it is."""
        if pynvml is None or not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            return None
        facts = torch.cuda.get_device_properties(torch.cuda.current_device())
        try:
            pynvml.nvmlInit()
            gpu = cls(pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{facts.uuid}"))
            gpu.busy()
        except (AttributeError, pynvml.NVMLError):  # an old PyTorch, or a driver that does not tell
            return None
        return gpu

    def busy(self) -> float | None:
        """The part of the last moment in which something ran on it; None if it does not tell any more."""
        try:
            return float(pynvml.nvmlDeviceGetUtilizationRates(self._handle).gpu) / 100
        except pynvml.NVMLError:
            return None
