"""What watching costs: the same loop with and without `watch`, in turns; and the CPU time of the thread that samples.

PYTHONPATH=tools python -m bench.watching
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterable

import torch

from readers import watch
from readers.diagnosis.counters import family, snapshot
from readers.diagnosis.samples import INTERVAL


def main() -> None:
    """Print both figures, and what they make of a step of a millisecond."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, default=100_000)
    options.add_argument("--rounds", type=int, default=7)
    given = options.parse_args()
    batches = [(torch.zeros(1), torch.zeros(1))] * given.steps
    plain, watched = [], []
    for _ in range(given.rounds):
        plain.append(passed(batches))
        with watch(batches, quiet=True) as seen:
            watched.append(passed(seen))
    step = (statistics.median(watched) - statistics.median(plain)) / given.steps
    sample = sampling(200)
    overhead = step / 1e-3 + sample / INTERVAL
    print(f"a step   {1e6 * step:7.2f} microseconds (median of {given.rounds} rounds of {given.steps} empty steps)")
    print(f"a sample {1e6 * sample:7.2f} microseconds of CPU, every {INTERVAL} s, beside {len(family(1))} processes")
    print(f"together {100 * overhead:7.2f} % of steps of 1 ms")


def passed(batches: Iterable[object]) -> float:
    """Seconds of a pass that does nothing."""
    begun = time.perf_counter()
    for _ in batches:
        pass
    return time.perf_counter() - begun


def sampling(count: int) -> float:
    """Seconds of CPU that a look at the machine takes."""
    processes = family(1)[:8]
    begun = time.thread_time()
    for _ in range(count):
        snapshot(processes)
    return (time.thread_time() - begun) / count


if __name__ == "__main__":
    main()
