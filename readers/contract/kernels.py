"""The kernels: C modules that do what libraries do slowly. Everything works without them, with the same bytes.

SEGPACK_KERNELS=0 turns them off. SEGPACK_KERNELS=plain forbids them instructions that not every CPU has.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

VARIABLE = "SEGPACK_KERNELS"


def kernel(name: str) -> Any | None:
    """Return a kernel's module; None if it is turned off, or was not compiled for this Python and machine."""
    if os.environ.get(VARIABLE) == "0":
        return None
    try:
        return import_module(name)
    except (ImportError, SystemError):  # the latter: it was compiled for a Python with the GIL
        return None


def fits_kernels(array: NDArray[Any]) -> bool:
    """Return whether kernels take an array: native numbers, lines without gaps between them, no axis backwards."""
    return array.dtype.isnative and array.strides[-1] == array.itemsize and min(array.strides) >= 0


def kernels_in_use(names: Sequence[str]) -> str:
    """Describe which of these kernels this process uses."""
    modules = {name: kernel(name) for name in names}
    missing = [name for name, module in modules.items() if module is None]
    if len(missing) == len(modules):
        return "none; the bytes are the same, but building and reading take longer"
    instructions = "AVX2" if any(module and module.avx2 for module in modules.values()) else "plain C"
    return instructions + (f", without {', '.join(missing)}" if missing else "")
