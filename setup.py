"""The kernels in C: every file *_kernel.c is a module. Everything else is in setup.cfg, which has no key for them.

Without a compiler the package installs without them. It then makes the same bytes, only slower.
"""

import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup

# One file for all versions of Python from 3.11 on, the first whose stable interface has buffers.
STABLE = sys.version_info >= (3, 11) and not sysconfig.get_config_var("Py_GIL_DISABLED")
SOURCES = sorted(path.as_posix() for room in ("packer", "readers") for path in Path(room).rglob("*_kernel.c"))

setup(
    ext_modules=[
        Extension(
            source.removesuffix(".c").replace("/", "."),
            [source],
            include_dirs=["readers/contract"],
            depends=[
                *sorted(map(str, Path("readers/contract").glob("*.h"))),
                *(path.as_posix() for path in Path(source).parent.glob("*.h")),
            ],
            define_macros=[("Py_LIMITED_API", "0x030B0000")] if STABLE else [],
            # a sum of products is rounded as NumPy rounds it; no names of folders, so that two builds have equal bytes
            extra_compile_args=["-O3", "-ffp-contract=off", "-g0"],
            py_limited_api=STABLE,
            optional=True,
        )
        for source in SOURCES
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE else {},
)
