"""Read the golden packs whole, on any system: every byte against its checksum, and all formats against each other.

tools/run drills.read_golden              # needs numpy, torch and blake3
tools/run drills.read_golden --windows    # without what Windows does not have: locks, flags of files, advice
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec

import torch
from program import REPO, parser

GOLDEN = REPO / "data_samples" / "golden"
OF_UNIX = ("fcntl", "resource", "pwd", "grp")
"""Modules that Windows does not have."""
CALLS = {
    os: ("pread", "preadv", "posix_fadvise", "sched_getaffinity", "uname", "geteuid", "getuid", "statvfs", "fork"),
    mmap: ("MAP_SHARED", "MAP_PRIVATE", "MAP_ANONYMOUS", "MAP_ANON", "PROT_READ", "PROT_WRITE"),
}
"""Names that these modules lack on Windows, besides flags of files."""


def hide_unix() -> None:
    """Take from this process what Python on Windows does not have. Torch and NumPy keep what they have imported."""
    for name in OF_UNIX:
        sys.modules[name] = None  # type: ignore[assignment]
    flags = [name for name in dir(os) if name.startswith("O_") and name not in ("O_RDONLY", "O_RDWR", "O_CREAT")]
    advice = [name for name in dir(mmap) if name.startswith("MADV_")]
    for module, names in ((os, (*CALLS[os], *flags)), (mmap, (*CALLS[mmap], *advice))):
        for name in names:
            if hasattr(module, name):
                delattr(module, name)


def read() -> Iterator[tuple[str, str]]:
    """Yield the name of each pack and split, and the SHA-256 of its rows: read one by one, and in batches of two."""
    from readers import open_dataset

    for folder in sorted(path.parent for path in GOLDEN.glob("*/manifest.json")):
        for split in [facts["name"] for facts in json.loads((folder / "manifest.json").read_text())["splits"]]:
            data = open_dataset(folder, split=split, verify="digest" if find_spec("blake3") else None)
            rows = [tuple(part.contiguous().numpy().tobytes() for part in data[row]) for row in range(len(data))]
            batched = [
                tuple(part[row].contiguous().numpy().tobytes() for part in batch)
                for batch in data.loader(1)
                for row in range(len(batch[0]))
            ]
            if rows != batched:
                raise SystemExit(f"{folder.name}: {split}: batches have other numbers than rows")
            digest = hashlib.sha256(b"".join(part for row in rows for part in row)).hexdigest()
            yield f"{folder.name} {split}", digest


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--windows", action="store_true", help="hide what Windows does not have")
    if options.parse_args().windows:
        hide_unix()
    kinds: dict[str, set[str]] = {}
    for name, digest in read():
        print(name, digest)
        kinds.setdefault(name.partition("-")[2], set()).add(digest)
    apart = sorted(kind for kind, digests in kinds.items() if len(digests) > 1)
    if apart:
        sys.exit(f"formats differ: {', '.join(apart)}")
    if len(kinds) < 5:
        sys.exit(f"only {sorted(kinds)} were read")
    print(f"equal in all formats, on {sys.platform}, PyTorch {torch.__version__}")


if __name__ == "__main__":
    main()
