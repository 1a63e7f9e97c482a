"""The output of `packer bench --json`."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from packer.bench.recommend import LoaderResult, by_batch, fast_from
from packer.bench.run import BenchResult
from packer.bench.settings import LOADER, LoaderSettings
from packer.cli.bench_text import code, milliseconds, reason, warnings
from packer.cli.version import KERNELS
from readers.contract.kernels import kernels_in_use


def facts(result: BenchResult, best: LoaderResult, target: float | None) -> dict[str, Any]:
    """Return all results in plain numbers: bytes, seconds, samples per second."""
    dataset, machine, first_pass = result.dataset, result.machine, result.first_pass
    return {
        "pack": {
            "path": str(result.request.out),
            "split": dataset.split,
            "format": dataset.manifest.storage,
            "rows": len(dataset),
            "bytes": result.bytes,
            "labels": dataset.label,
            "fields": [field.name for field in dataset.fields],
            "crop": list(result.request.crop) if result.request.crop else None,
            "sample_bytes": result.workload.row_bytes,
        },
        "machine": {
            "cores": machine.affinity,
            "cpu_quota": machine.quota,
            "memory": machine.memory,
            "memory_free": machine.available,
            "shared_memory_free": machine.shared,
            "kernels": kernels_in_use(KERNELS),
        },
        "first_pass": {
            "rows": first_pass.rows,
            "seconds": first_pass.seconds,
            "samples_per_second": first_pass.rate,
            "in_memory_before": first_pass.cached,
        },
        "warm_rates_apply": not result.larger_than_memory,
        "copy_loop": {"threads": machine.cores, "samples_per_second": _spread(result.copy_rates)},
        "trials": [_loader(result, loader) for loader in result.loaders],
        "left_out": [
            {**_settings(skipped.settings), "why": skipped.reason, "needed": skipped.needed, "there": skipped.available}
            for skipped in result.skipped
        ],
        "cheapest_by_batch": [_loader(result, loader) for loader in by_batch(result.loaders, target).values()],
        "target": None if target is None else {"samples_per_second": target, "met": best.rate >= target},
        "recommended": {
            **_loader(result, best),
            "as_fast_from": fast_from(result.loaders),
            "why": reason(result, best, target),
            "code": "\n".join(code(result, best.settings)),
        },
        "warnings": warnings(result, target),
    }


def _loader(result: BenchResult, loader: LoaderResult) -> dict[str, Any]:
    return {
        **_settings(loader.settings),
        "samples_per_second": _spread(loader.rates),
        "bytes_per_second": loader.rate * result.workload.row_bytes,
        "of_copy_loop": loader.ratio,
        "milliseconds_per_batch": milliseconds(result, loader),
        "memory": result.workload.memory(loader.settings),
        "shared_memory": result.workload.shared_memory(loader.settings),
        "rounds": len(loader.rates),
    }


def _settings(settings: LoaderSettings) -> dict[str, Any]:
    own = settings.kind == LOADER
    return {
        "loader": settings.kind,
        "batch": settings.batch,
        "threads": settings.workers if own else None,
        "ahead": settings.ahead if own else None,
        "workers": None if own else settings.workers,
    }


def _spread(rates: Sequence[float]) -> dict[str, float]:
    return {"median": statistics.median(rates), "least": min(rates), "most": max(rates)}
