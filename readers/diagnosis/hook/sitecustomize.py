"""Starts a session of `packer diagnose`: Python imports `sitecustomize` at its start, and this folder is first."""

import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent

sys.path[:] = [path for path in sys.path if Path(path).resolve() != HERE]
hidden = PathFinder.find_spec(__name__, sys.path)
if hidden is not None and hidden.loader is not None:  # the sitecustomize that this file hides
    module = module_from_spec(hidden)
    sys.modules[__name__] = module
    hidden.loader.exec_module(module)
try:
    from readers.diagnosis import session
except ImportError as error:
    print(f"packer diagnose: {sys.executable}: {error}: install segpack in that Python too", file=sys.stderr)
else:
    session.begin()
