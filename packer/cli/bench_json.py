"""What `packer bench --json` prints."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from packer.bench.run import Answer
from packer.bench.settings import LOADER, Setting, Trial, by_batch
from packer.cli.bench_text import code, milliseconds, warnings, why


def facts(found: Answer, best: Trial, target: float | None) -> dict[str, Any]:
    """All of it, in plain numbers: bytes, seconds, samples a second."""
    dataset, machine, first = found.dataset, found.machine, found.first
    return {
        "pack": {
            "path": str(found.question.out),
            "split": dataset.split,
            "format": dataset.manifest.storage,
            "rows": len(dataset),
            "bytes": found.bytes,
            "labels": dataset.label,
            "crop": list(found.question.crop) if found.question.crop else None,
            "sample_bytes": found.load.row_bytes,
        },
        "machine": {
            "cores": machine.affinity,
            "cpu_quota": machine.quota,
            "memory": machine.memory,
            "memory_free": machine.available,
            "shared_memory_free": machine.shared,
        },
        "first_pass": {
            "rows": first.rows,
            "seconds": first.seconds,
            "samples_per_second": first.rate,
            "in_memory_before": first.cached,
        },
        "warm_rates_apply": not found.larger_than_memory,
        "copy_loop": {"threads": machine.cores, "samples_per_second": _spread(found.copy)},
        "trials": [_trial(found, one) for one in found.trials],
        "left_out": [
            {**_setting(one.setting), "why": one.why, "needed": one.needed, "there": one.there}
            for one in found.sweep.left_out
        ],
        "cheapest_by_batch": [_trial(found, one) for one in by_batch(found.trials, target).values()],
        "target": None if target is None else {"samples_per_second": target, "met": best.rate >= target},
        "recommended": {
            **_trial(found, best),
            "why": why(found, best, target),
            "code": "\n".join(code(found, best.setting)),
        },
        "warnings": warnings(found, target),
    }


def _trial(found: Answer, one: Trial) -> dict[str, Any]:
    return {
        **_setting(one.setting),
        "samples_per_second": _spread(one.rates),
        "bytes_per_second": one.rate * found.load.row_bytes,
        "of_copy_loop": one.part,
        "milliseconds_per_batch": milliseconds(found, one),
        "memory": found.load.memory(one.setting),
        "shared_memory": found.load.shared(one.setting),
        "rounds": len(one.rates),
    }


def _setting(setting: Setting) -> dict[str, Any]:
    own = setting.kind == LOADER
    return {
        "loader": setting.kind,
        "batch": setting.batch,
        "threads": setting.workers if own else None,
        "ahead": setting.ahead if own else None,
        "workers": None if own else setting.workers,
    }


def _spread(rates: Sequence[float]) -> dict[str, float]:
    return {"median": statistics.median(rates), "least": min(rates), "most": max(rates)}
