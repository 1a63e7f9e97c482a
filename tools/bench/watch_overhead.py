"""The cost of `readers.watch`: the same loop with and without it, in turns, and the CPU time of its sampling thread.

tools/run bench.watch_overhead [--steps 100000] [--rounds 7]
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable

import torch
from program import parser

from readers import watch
from readers.diagnosis.counters import family, snapshot
from readers.diagnosis.samples import INTERVAL


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--steps", type=int, default=100_000)
    options.add_argument("--rounds", type=int, default=7)
    chosen = options.parse_args()
    batches = [(torch.zeros(1), torch.zeros(1))] * chosen.steps
    plain, watched = [], []
    for _ in range(chosen.rounds):
        plain.append(pass_seconds(batches))
        with watch(batches, quiet=True) as watched_batches:
            watched.append(pass_seconds(watched_batches))
    step = (statistics.median(watched) - statistics.median(plain)) / chosen.steps
    sample = sample_seconds(200)
    overhead = step / 1e-3 + sample / INTERVAL
    print(f"a step   {1e6 * step:7.2f} microseconds (median of {chosen.rounds} rounds of {chosen.steps} empty steps)")
    print(f"a sample {1e6 * sample:7.2f} microseconds of CPU, every {INTERVAL} s, with {len(family(1))} processes")
    print(f"together {100 * overhead:7.2f} % of steps of 1 ms")


def pass_seconds(batches: Iterable[object]) -> float:
    """Return the time of a pass whose steps do nothing."""
    begun = time.perf_counter()
    for _ in batches:
        pass
    return time.perf_counter() - begun


def sample_seconds(count: int) -> float:
    """Return the CPU time of one sample of the machine's counters."""
    processes = family(1)[:8]
    begun = time.thread_time()
    for _ in range(count):
        snapshot(processes)
    return (time.thread_time() - begun) / count
