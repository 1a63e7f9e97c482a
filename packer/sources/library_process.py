"""A process in which a library in C opens the arrays of a container. A damaged file may crash it, or keep it busy.

So the process that plans a build never opens such a file. It has threads, and a fork of it could hang. So this process
begins as a new interpreter.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from importlib import import_module
from subprocess import DEVNULL, PIPE, Popen
from typing import Any, Protocol

from packer.errors import BadPair, EngineError
from packer.sources.portable_functions import words_of

CPU_SECONDS = 60
"""The most seconds of CPU time from one answer to the next. A library that walks in circles would use more."""
_START = "from packer.sources.library_process import main; main()"


class Asked(Protocol):
    """A class of sources that opens its arrays with a library."""

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> Any: ...

    def to_text(self) -> str: ...


def ask(source: Asked, question: str) -> Iterator[Any]:
    """Yield what a method of the source yields in a process of its own. Raise BadPair if that ends early."""
    kind = type(source)
    command = [sys.executable, "-c", _START, kind.__module__, kind.__qualname__, question, str(CPU_SECONDS)]
    path = os.pathsep.join(map(os.path.abspath, sys.path))
    environment = {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}
    try:
        started = Popen(command, cwd="/", stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment)
    except OSError as error:
        raise EngineError(f"the process that reads arrays cannot be started: {error.strerror}") from error
    with started as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with process.stdin as pipe:
                pipe.write(source.to_text().encode())
            for line in process.stdout:
                if not line.endswith(b"\n"):
                    break
                answer, problem = json.loads(line)
                if problem is not None:
                    raise BadPair(problem)
                yield answer
            code = process.wait()
        except BrokenPipeError:
            code = process.wait()
        except BaseException:
            process.kill()
            raise
    if code:
        raise BadPair(_cause(code))


def _cause(code: int) -> str:
    """Describe the end of the process."""
    if code == -signal.SIGXCPU:
        return f"kept the process that read it busy for {CPU_SECONDS} s of CPU time; the file is damaged"
    if code == -signal.SIGKILL:
        return "had the process that read it killed (SIGKILL), perhaps for want of memory"
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        return f"crashed the process that read it ({name}); the file is damaged"
    return f"ended the process that read it (exit code {code})"


def main() -> None:
    """Answer a question in the new process: a line of JSON for each answer, with a problem instead of the last one."""
    module, name, question, seconds = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    source = getattr(import_module(module), name).from_json(json.load(sys.stdin))
    answers: Iterable[Any] = getattr(source, question)()
    _allow(int(seconds))
    try:
        for answer in answers:
            print(json.dumps((answer, None)), flush=True)
            _allow(int(seconds))
    except Exception as error:  # noqa: BLE001 - the process that asked has words for a reason, and not for a traceback
        problem = str(error) if isinstance(error, BadPair) else f"cannot be read: {words_of(error)}"
        print(json.dumps((None, problem)), flush=True)


def _allow(seconds: int) -> None:
    """Let the kernel end this process after this number of further seconds of CPU time."""
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    limit = int(time.process_time()) + 1 + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))
