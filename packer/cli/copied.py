"""The summary of a copy of a pack, for `packer push`, `packer pull` and `packer stage`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from packer.cli.output import show
from packer.cli.values import bytes_text
from packer.errors import counted

if TYPE_CHECKING:
    from packer.packs.copy_shards import Copied


def show_copied(names: dict[str, str], where: str, copied: Copied, as_json: bool) -> None:
    """Print where a copy lies, as a sentence or as JSON with these names, and how much of it was copied."""
    manifest = copied.manifest
    facts = {
        **names,
        "generation": manifest.generation,
        "shards": manifest.shards,
        "bytes": manifest.bytes,
        "copied_shards": copied.shards,
        "copied_bytes": copied.bytes,
    }
    show(
        json.dumps(facts, indent=1)
        if as_json
        else f"{where}; {copied.shards} of {counted(manifest.shards, 'shard')} copied, "
        f"{bytes_text(copied.bytes)} of {bytes_text(manifest.bytes)}"
    )
