"""The command `packer`, and `python -m packer`."""

from __future__ import annotations

import gc
import os
import shlex
import signal
import sys

NO_MEMORY = ("failed to map segment", "annot allocate memory", "Unable to allocate")
"""Words of the dynamic loader and of numpy."""
PACKAGES = {
    "PIL": "pillow",
    "cv2": "opencv-python-headless",
    "google_crc32c": "google-crc32c",
    "yaml": "pyyaml",
    "zlib_ng": "zlib-ng",
}
"""The packages whose modules have other names."""
NO_THREAD = "can't start new thread"
WINDOWS = "runs on Linux and macOS, so start it in WSL; Windows itself reads packs: from readers import open_dataset"


def main() -> None:
    """Run the command line. Before it is loaded and after it is done, a signal prints no traceback."""
    if os.name == "nt":
        sys.exit(f"packer: {WINDOWS}")
    from packer.signals import exit_at_once, handle_signals

    handle_signals(exit_at_once)
    try:
        _command()
    finally:
        handle_signals(signal.SIG_IGN)
        gc.freeze()  # the end of Python would search all objects for cycles, which takes 40 ms of CPU


def _command() -> None:
    """Run the commands, with advice instead of a traceback where a library cannot be loaded."""
    try:
        from packer.cli import main as command

        command()
    except ModuleNotFoundError as error:
        name = error.name or ""
        if not name.isidentifier() or name.startswith("_"):  # a part of a library, or of Python
            raise
        sys.exit(f"packer: {name} is not installed: {_pip()} install {PACKAGES.get(name, name)}")
    except ImportError as error:
        if ".so" not in str(error):
            raise
        sys.exit(f"packer: {_why_not_loaded(str(error))}")
    except RuntimeError as error:
        if NO_THREAD not in str(error):
            raise
        sys.exit(f"packer: no more threads can be started here; {_memory_advice('or of processes (ulimit -u)')}")


def _why_not_loaded(error: str) -> str:
    """Return what to do about a shared library that does not load."""
    if any(words in error for words in NO_MEMORY):
        return f"too little memory to load the libraries ({error}); {_memory_advice()}"
    return (
        f"OpenCV does not load here ({error}); on a machine without a screen install the headless build: "
        f"{_pip()} uninstall -y opencv-python && {_pip()} install --force-reinstall --no-deps opencv-python-headless"
    )


def _pip() -> str:
    """Return the command of pip for this Python, which is not always the first in PATH."""
    return f"{shlex.quote(sys.executable)} -m pip"


def _memory_advice(other: str = "") -> str:
    """Name the limit of this shell, if it has one: `ulimit -v` counts addresses, which libraries reserve."""
    import resource

    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most != resource.RLIM_INFINITY:
        return f"the limit of addresses (ulimit -v) is {most >> 20} MiB: raise it to 2 GiB or more, or remove it"
    return " ".join(f"raise the limit of memory {other}".split())


if __name__ == "__main__":
    main()
