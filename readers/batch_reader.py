"""`BatchReader` and `BatchOrder`: what a loader needs of the rows that it reads, and of the order in which it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from readers.batch_memory import Lease
from readers.contract.fields import Field
from readers.drawn import BatchDraw
from readers.fetch_ahead import Fetching
from readers.statistics import MeanStd
from readers.tone import Tone


class BatchReader(Protocol):
    """Reads batches: of a data set, of several packs, with partners, or windows of rows. Threads share it."""

    @property
    def size(self) -> int:
        """The number of rows in a batch."""
        ...

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields of a batch."""
        ...

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts of a batch: the fields, or keys and fields."""
        ...

    @property
    def mean_std(self) -> MeanStd | None:
        """Mean and standard deviation of the training split's images; None if it is not clear which split that is."""
        ...

    @property
    def tone(self) -> Tone | None:
        """The colours and numbers that the image gets while it is read; None if it stays unchanged."""
        ...

    @property
    def on_device(self) -> bool:
        """True if windows are made on the device: `read` returns a `RawBatch`."""
        ...

    @property
    def steps(self) -> tuple[str, ...]:
        """The options of a loader that cost the CPU more than a copy."""
        ...

    @property
    def unpacks(self) -> bool:
        """True if a field is not stored raw."""
        ...

    def with_stored_labels(self) -> tuple[BatchReader, int | None]:
        """Return a reader whose labels are not expanded, and the number of planes into which the device expands them;
        None if it does not."""
        ...

    def read(self, batch: Any, lease: Lease) -> tuple[Any, ...]:
        """Return a batch in memory from `lease`."""
        ...

    def drawn(self, batch: Any, lease: Lease, counts: bool = False) -> tuple[tuple[Any, ...], BatchDraw]:
        """Return the same, and how it was drawn; with `counts` also the pixels of its classes."""
        ...

    @property
    def label(self) -> Field | None:
        """The label by whose classes rows or windows are drawn; None if they are not."""
        ...

    def prefetch(self, batches: Sequence[Any]) -> None:
        """Ask the kernel to read batches from the disk before they are needed."""
        ...

    def drop(self, batch: Any) -> None:
        """Take what was read of a batch out of the page cache: it is not needed again soon."""
        ...

    def bytes(self) -> int:
        """Return about how many bytes of the disk a batch has: as if all rows were as large as the first."""
        ...

    def fetch_ahead(self, coming: Callable[[], Iterator[Any]], at_once: int, ranks: int) -> Fetching | None:
        """Begin to fetch the shards of coming batches; None if there is nothing to fetch."""
        ...


class BatchPass(Protocol):
    """One pass of a rank through the rows."""

    def batch_count(self, size: int) -> int: ...

    def batches(self, size: int) -> Iterator[Any]: ...


class BatchOrder(Protocol):
    """Computes which rows come in which batch, epoch by epoch, and knows what all ranks have received."""

    @property
    def shuffle(self) -> Any: ...

    @property
    def seed(self) -> int: ...

    @property
    def epoch(self) -> int: ...

    @property
    def rank(self) -> int: ...

    @property
    def world_size(self) -> int: ...

    @property
    def consumed(self) -> int: ...

    @property
    def padding(self) -> int: ...

    def set_epoch(self, epoch: int) -> None: ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...

    def whole(self) -> BatchPass: ...

    def coming(self) -> BatchPass: ...

    def begin(self) -> BatchPass: ...

    def receive(self, consumed: tuple[int, ...]) -> None: ...

    def finish(self) -> None: ...
