"""A description of the machine and the versions, for the head of a bench."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKER_PACKAGES = ("numpy", "opencv-python", "simplejpeg", "h5py", "lmdb", "pyarrow")


def machine() -> str:
    """Return the processor, the memory and the kernel."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return f"{processor()}, {memory:.0f} GiB, {platform.system()} {platform.release()}"


def processor() -> str:
    """Return the number of cores and the model of the processor."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    return f"{os.cpu_count()} x {models[0] if models else platform.machine()}"


def versions(packages: Iterable[str]) -> str:
    """Return the versions of Python and of packages, each once."""
    named = ", ".join(f"{package} {_version(package)}" for package in dict.fromkeys(packages))
    return f"python {platform.python_version()}, {named}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"
