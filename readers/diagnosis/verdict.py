"""`Verdict`: the bottleneck of a training, the evidence, and advice in the order of what it can gain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from readers.diagnosis.record import Record

FEW_STEPS = 20
LITTLE = 0.05
"""A loss below this fraction of the time is not worth a change."""
FULL = 0.85
STALLED = 0.2
DISK_READS = 5e6
"""Bytes a second below which a disk does not count as busy."""


@dataclass(frozen=True)
class Advice:
    """A change, the reason for it, and the fraction of the time that it can gain at most."""

    gain: float
    action: str
    why: str


@dataclass(frozen=True)
class Verdict:
    """The conclusion from a record."""

    bottleneck: str
    """"data", "disk", "cpu", "copying", "starting", "model" or "unknown"."""
    headline: str
    evidence: tuple[str, ...]
    advice: tuple[Advice, ...]

    def __str__(self) -> str:
        lines = [self.headline, *(f"  {line}" for line in self.evidence)]
        for number, advice in enumerate(self.advice, 1):
            lines.append(f"{number}. {advice.action}")
            lines.append(f"   {advice.why}")
        return "\n".join(lines)


def verdict(record: Record) -> Verdict:
    """Return the verdict on a record."""
    totals = record.totals
    if totals.steps < FEW_STEPS:
        headline = f"Only {totals.steps} steps were measured, too few for a verdict: watch {FEW_STEPS} or more."
        return Verdict("unknown", headline, tuple(_evidence(record)), ())
    lost = {
        "data": record.waited,
        "copying": record.part(totals.copying),
        "starting": record.part(totals.starting),
    }
    bottleneck, most = max(lost.items(), key=lambda loss: loss[1])
    if most < LITTLE:
        bottleneck = "model"
    elif bottleneck == "data":
        bottleneck = _cause(record)
    advice = sorted(_advice(record, bottleneck, lost), key=lambda advice: -advice.gain)
    return Verdict(bottleneck, _headline(record, bottleneck, most), tuple(_evidence(record)), tuple(advice))


def _cause(record: Record) -> str:
    """Return the reason why the program waits for data."""
    use = record.use
    if use.stalled >= STALLED and use.read >= DISK_READS:
        return "disk"
    return "cpu" if use.cpu >= FULL else "data"


def _headline(record: Record, bottleneck: str, most: float) -> str:
    who = "The GPU" if record.by_gpu else "The training"
    faster = f"without that it would be {1 / (1 - min(most, 0.99)):.1f} times as fast"
    return {
        "model": f"The model is the bottleneck: only {_percent(record.waited)} of the time is spent waiting for data.",
        "disk": f"The disk is the bottleneck: {who.lower()} waits for data {_percent(most)} of the time; {faster}.",
        "cpu": f"The CPU is the bottleneck: {who.lower()} waits for data {_percent(most)} of the time; {faster}.",
        "data": f"{who} waits for data {_percent(most)} of the time, and CPU and disk are not busy; {faster}.",
        "copying": f"Copying and finishing batches takes {_percent(most)} of the time; {faster}.",
        "starting": f"Starting and ending passes takes {_percent(most)} of the time; {faster}.",
    }[bottleneck]


def _evidence(record: Record) -> Iterator[str]:
    totals, use = record.totals, record.use
    split = "  ".join(
        f"{name} {_percent(record.part(seconds))}"
        for name, seconds in (
            ("waiting for data", totals.waiting),
            ("copying", totals.copying),
            ("computing", totals.computing),
            ("starting passes", totals.starting),
        )
    )
    yield f"{totals.steps} steps, {1000 * record.seconds / max(1, totals.steps):.1f} ms each: {split}"
    if record.by_gpu:
        steps = totals.idle_steps / totals.gaps
        yield f"the GPU had nothing to do {_percent(record.waited)} of the time, before {_percent(steps)} of the steps"
    if use.seconds:
        own = f", {_percent(use.own_cpu)} by this training" if use.cpu - use.own_cpu > LITTLE else ""
        yield f"CPU {_percent(use.cpu)} of {record.cores:g} cores{own}; {use.read / 1e6:.1f} MB/s from the disk, " + (
            f"for which programs waited {_percent(use.stalled)} of the time"
        )
    if use.gpu is not None:
        yield f"GPU {_percent(use.gpu)} busy, according to its driver"
    yield f"batches come from {_source(record)}"


def _advice(record: Record, bottleneck: str, lost: dict[str, float]) -> Iterator[Advice]:
    source, use = record.source, record.use
    if bottleneck == "model":
        yield from _of_model(record)
    elif lost["data"] >= LITTLE:
        yield from _of_data(record, bottleneck, lost["data"])
    if lost["copying"] >= LITTLE and not source.on_device:
        yield Advice(lost["copying"], "Copy batches ahead of use: to_device(loader, device).", "Copies then overlap.")
    elif lost["copying"] >= LITTLE:
        action = "Do less to each batch: a cheaper augment, labels as indices, dtype=torch.bfloat16."
        yield Advice(lost["copying"], action, "Copying and finishing batches takes time on the device.")
    if lost["starting"] >= LITTLE:
        yield Advice(lost["starting"], *_of_starting(record))
    if use.cpu >= FULL and use.own_cpu < use.cpu / 2:
        why = f"This training uses {_percent(use.own_cpu)} of the CPU, others {_percent(use.cpu - use.own_cpu)}."
        yield Advice(LITTLE, "Check what else runs on this machine.", why)


def _of_model(record: Record) -> Iterator[Advice]:
    gpu = record.use.gpu
    if record.gpu is None and record.use.cpu >= FULL and not record.source.packed:
        action = "Pack the data: packer build RAW OUT. Decoding takes cores from the model, which has no GPU."
        yield Advice(2 * LITTLE, action, "Decoding slows it down, which does not show as waiting.")
    if gpu is not None and gpu < FULL:
        action = "Give the GPU more at once: a larger batch, torch.compile or CUDA graphs, no .item() in each step."
        yield Advice(1 - gpu, action, f"It is busy {_percent(gpu)} of the time, although batches are ready.")
    else:
        action = "Make the model's step cheaper: torch.autocast with bfloat16, channels_last, torch.compile."
        yield Advice(LITTLE, action, "Nothing that loads data faster can help.")


def _of_data(record: Record, bottleneck: str, gain: float) -> Iterator[Advice]:
    source, use = record.source, record.use
    if bottleneck == "disk":
        free = f"{use.available / 2**30:.1f} GiB of memory are free."
        yield Advice(
            gain, "Copy the pack to a faster place: packer stage OUT /local/disk, or packer stage --ram OUT.", free
        )
    if not source.packed:
        why = "Nothing is decoded in training then: rows are copied out of a memory map."
        yield Advice(0.99 * gain, "Pack the data: packer build RAW OUT; train = open_dataset(OUT).loader(…).", why)
        if bottleneck == "data" and source.workers is not None and source.workers < record.cores:
            action = f"Until then: num_workers={int(record.cores)} instead of {source.workers}, prefetch_factor=4."
            yield Advice(0.5 * gain, action, f"The CPU is only {_percent(use.cpu)} busy.")
    elif not source.own_loader:
        why = "Worker processes send each batch to the trainer as a copy; threads do not."
        yield Advice(0.99 * gain, "Use train.loader(batch_size, shuffle=True), augment on the device.", why)
    elif bottleneck == "cpu" and source.steps:
        move = 'loader(…, on="device") moves them to the GPU. ' if record.gpu is not None else ""
        action = (
            f"Do less on the CPU: {', '.join(source.steps)}. {move}packer bench --augment OUT says what each costs."
        )
        yield Advice(0.9 * gain, action, "Copying rows is cheap; all other work on them costs more.")
    elif bottleneck == "cpu":
        action = "Let the CPU do less: .to(device, augment=…), labels as indices, crop=(h, w) instead of whole rows."
        yield Advice(0.9 * gain, action, "Copying rows is cheap; all other work on them costs more.")
    else:
        why = f"{source.workers} threads read, and the CPU is only {_percent(use.cpu)} busy."
        yield Advice(
            0.9 * gain, "Read further ahead: packer bench OUT finds the best threads=, ahead= and batch_size=.", why
        )


def _of_starting(record: Record) -> tuple[str, str]:
    seconds = record.totals.starting / max(1, record.totals.passes)
    if record.source.workers and not record.source.own_loader:
        return (
            "Keep the workers: persistent_workers=True.",
            f"Each pass starts new workers, which takes {seconds:.1f} s.",
        )
    return (
        "Make passes longer, or join several epochs to one pass.",
        f"Each pass starts with {seconds:.2f} s without a batch.",
    )


def _source(record: Record) -> str:
    source = record.source
    facts = [
        f"batches of {source.batch}" if source.batch else "",
        f"{source.workers} {'threads' if source.own_loader else 'worker processes'}"
        if source.workers is not None
        else "",
        "a pack" if source.packed else "not packed",
    ]
    return f"{source.name} ({', '.join(filter(None, facts))})"


def _percent(part: float) -> str:
    return f"{100 * part:.1f} %" if part < 0.1 else f"{100 * part:.0f} %"
