"""The text of a source for other machines: absolute paths, which may differ there, no ctimes, and nothing pickled."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from packer.errors import InputError, UsageError
from packer.sources.file_states import elsewhere
from packer.sources.portable_functions import FUNCTIONS, is_named
from readers.stores.open_store import url_of

PATHS = ("raw", "root", "path")
"""A source has one of these keys: the folder or the file that holds its rows."""
URL = "url"
"""The key of a source in a store, which is the same for all machines."""


def portable(text: str) -> str:
    """Return the text of a source as a plan keeps it. Raise UsageError if functions can only be pickled."""
    facts = json.loads(text)
    for key in PATHS:
        if key in facts:
            facts[key] = str(Path(facts[key]).absolute())
    if "files" in facts:
        facts["files"] = {file: elsewhere(state) for file, state in facts["files"].items()}
    if "states" in facts:
        facts["states"] = [elsewhere(state) for state in facts["states"]]
    if FUNCTIONS in facts and not is_named(facts[FUNCTIONS]):
        raise UsageError(
            "load, version and sizes of a plan must be functions at the top level of a module that other machines can "
            "import: a plan names the module and the function, because nothing in it is unpickled"
        )
    return json.dumps(facts)


def path_of(text: str) -> str:
    """Return the folder or the file that holds the rows of a source; an empty text if it has none."""
    facts = json.loads(text)
    return next((str(facts[key]) for key in (URL, *PATHS) if key in facts), "")


def moved(text: str, old: str, new: Path) -> str:
    """Return the text of a source whose rows were planned at the path `old` and are at `new` on this machine."""
    facts, path = json.loads(text), str(new.absolute())
    if URL in facts:
        return json.dumps({**facts, URL: _moved_url(str(facts[URL]), old, url_of(new) or f"file://{path}")})
    if not old:
        raise UsageError(f"--raw {new}: the rows of this plan come from functions, not from a path")
    if not new.exists():
        raise InputError(f"--raw {new}: does not exist")
    source_path = path_of(text)
    if source_path != old and not old.startswith(f"{source_path}/"):
        raise UsageError(f"--raw {new}: the plan names {old}, but its source {source_path}")
    if source_path != old:  # an archive: its source names the folder
        if Path(old).name != new.name:
            raise UsageError(f"--raw {new}: was planned as {old}, and must keep that name")
        old, path = str(Path(old).parent), str(new.absolute().parent)
    return json.dumps(_swapped(facts, old, path))


def _moved_url(url: str, old: str, new: str) -> str:
    """Return the folder below which a source finds its objects, if what was planned at the URL `old` is at `new`."""
    name = old.removeprefix(url) if old.startswith(f"{url}/") else ""  # of an archive in the folder
    if not new.endswith(name):
        raise UsageError(f"--raw {new}: was planned as {old}, and must keep that name")
    return new.removesuffix(name)


def check_portable(text: str, modules: Collection[str] | None = None) -> None:
    """Refuse the text of a source that would unpickle something, or call functions of other modules than these.

    None allows every module: the caller has shown that this is the plan it means.
    """
    facts = json.loads(text)
    if FUNCTIONS not in facts:
        return
    if not is_named(facts[FUNCTIONS]):
        raise UsageError("the plan has functions that are not named as module:function; nothing in a plan is unpickled")
    named = [str(name) for name in json.loads(facts[FUNCTIONS]) if name is not None]
    refused = [name for name in named if modules is not None and name.partition(":")[0] not in modules]
    if refused:
        module = refused[0].partition(":")[0]
        raise UsageError(
            f"the plan calls {', '.join(refused)}; if that is what you planned: --allow-functions {module}"
        )


def _swapped(value: Any, old: str, new: str) -> Any:
    """Return facts with the path `new` where `old` or a path below it was."""
    if isinstance(value, str) and (value == old or value.startswith(f"{old}/")):
        return new + value[len(old) :]
    if isinstance(value, list):
        return [_swapped(item, old, new) for item in value]
    if isinstance(value, dict):
        return {key: _swapped(item, old, new) for key, item in value.items()}
    return value
