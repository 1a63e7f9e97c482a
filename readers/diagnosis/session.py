"""`Session`: watches every loader of a program whose code is unchanged. `packer diagnose` starts programs this way."""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import wraps
from importlib import import_module
from importlib.abc import Loader as ModuleLoader
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:  # these import torch, which takes seconds; a program that never trains does not need it
    from readers.diagnosis.record import BatchSource
    from readers.diagnosis.samples import Samples
    from readers.diagnosis.steps import Steps

T = TypeVar("T")

FOLDER = "SEGPACK_DIAGNOSE"
"""The environment variable with the folder for the records."""
LOADERS = {
    "torch.utils.data.dataloader": "DataLoader",
    "torchdata.stateful_dataloader.stateful_dataloader": "StatefulDataLoader",
    "readers.loader": "Loader",
    "readers.device": "DeviceBatches",
    "ffcv.loader.loader": "Loader",
    "nvidia.dali.plugin.base_iterator": "_DaliBaseIterator",
}
"""The classes whose passes are watched, by module."""
WRITTEN_EVERY = 5.0
MOST_SOURCES = 64


class Session:
    """The records of this process, written to a file of its own every few seconds and at its end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process = os.getpid()
        self._steps: dict[BatchSource, Steps] = {}
        self._samples: Samples | None = None
        self._written = time.monotonic()
        self._lock = threading.Lock()
        self._inside = threading.local()

    def watched(self, begin: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
        """Wrap the `__iter__` of a loader class, so that its steps are timed."""

        @wraps(begin)
        def iterate(loader: Any) -> Iterator[Any]:
            inside: bool = getattr(self._inside, "yes", False)
            if inside or os.getpid() != self._process:
                return begin(loader)  # the inner loader of another loader, or a loader in a worker process
            return self._of_pass(loader, begin)

        return iterate

    def _of_pass(self, loader: Any, begin: Callable[[Any], Iterator[Any]]) -> Iterator[Any]:
        from readers.diagnosis.source import source_of
        from readers.diagnosis.steps import Steps

        source = source_of(loader)
        with self._lock:
            if self._samples is None:
                self._start()
            if source not in self._steps and len(self._steps) >= MOST_SOURCES:
                return begin(loader)
            steps = self._steps.setdefault(source, Steps())
        return steps.of_pass(loader, lambda inner: self._alone(begin, inner))

    def _alone(self, begin: Callable[[Any], Iterator[Any]], loader: Any) -> Iterator[Any]:
        """Return the batches of a loader. Loaders that it iterates itself are not watched."""
        return _Alone(self._inside, begin, loader)

    def _start(self) -> None:
        from readers.diagnosis.samples import Samples

        self._samples = Samples(self._write_sometimes)
        self._samples.start()
        atexit.register(self._end)

    def _write_sometimes(self) -> None:
        """Write the records every few seconds, because the program may be killed."""
        if time.monotonic() - self._written > WRITTEN_EVERY:
            self._write()

    def _end(self) -> None:
        if os.getpid() == self._process and self._samples is not None:
            self._samples.stop()
            self._write()

    def _write(self) -> None:
        from readers.contract.atomic import write_atomic
        from readers.diagnosis.watch import record_of

        self._written = time.monotonic()
        with self._lock:
            steps_of_sources = list(self._steps.items())
        records = [record_of(source, steps, self._samples).to_json() for source, steps in steps_of_sources]
        write_atomic(self._folder / f"{self._process}.json", json.dumps(records))


class _Alone:
    """An iterator that marks its thread while it runs, so that inner loaders are not watched."""

    def __init__(self, inside: threading.local, begin: Callable[[Any], Iterator[Any]], loader: Any) -> None:
        self._inside = inside
        self._batches = self._marked(lambda: begin(loader))

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self._marked(lambda: next(self._batches))

    def _marked(self, work: Callable[[], T]) -> T:
        self._inside.yes = True
        try:
            return work()
        finally:
            self._inside.yes = False

    def close(self) -> None:
        """End a pass that is not finished."""
        close = getattr(self._batches, "close", None)
        if close is not None:
            close()


class _Finder(MetaPathFinder):
    """An import hook that changes the classes of `LOADERS` when their modules are imported."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._busy: set[str] = set()

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in LOADERS or name in self._busy:
            return None
        self._busy.add(name)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _ChangingLoader(spec.loader, self._session)
        return spec


class _ChangingLoader(ModuleLoader):
    """Loads a module with its own loader, then changes its class."""

    def __init__(self, loader: Any, session: Session) -> None:
        self._loader = loader
        self._session = session

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        change(module, self._session)


def change(module: ModuleType, session: Session) -> None:
    """Watch the loader class of a module; a version without that class is not changed."""
    kind = getattr(module, LOADERS[module.__name__], None)
    if kind is not None and "__iter__" in vars(kind):
        kind.__iter__ = session.watched(kind.__iter__)


def begin() -> None:
    """Watch this program if the environment variable is set."""
    folder = os.environ.get(FOLDER)
    if folder:
        session = Session(Path(folder))
        sys.meta_path.insert(0, _Finder(session))
        for name in LOADERS.keys() & sys.modules.keys():
            change(import_module(name), session)
