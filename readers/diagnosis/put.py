"""`put_text`: a whole file, or the one that was there before."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import NamedTemporaryFile


def put_text(path: Path, text: str) -> None:
    """Write beside, sync, rename."""
    with NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", delete=False, encoding="utf-8") as file:
        try:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink()
            raise
