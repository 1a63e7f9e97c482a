"""`PlannedShards`: shards of a plan folder, built on this machine."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path

from packer.errors import InputError
from packer.publish.upload import Outbox, open_outbox
from packer.recipe.plan_folder import PLAN, PlanFolder
from packer.shards.versions import version_refusal
from packer.sources.portable import check_portable, moved, path_of
from packer.sources.reopen import reopen
from packer.workers.jobs import ShardJob
from packer.workers.pool import Pool
from readers.contract.errors import DamagedError, ReadError
from readers.contract.receipt import Receipt
from readers.stores.open_store import is_url, open_store, url_of


class PlannedShards:
    """A plan folder, and its source as this machine sees it."""

    def __init__(self, plan: PlanFolder, source: str) -> None:
        self.plan, self._source, self._reopened = plan, source, reopen(source)
        self.refusal = version_refusal(plan.facts.recipe, self._reopened, plan.facts.package)
        """The reason why this machine would make other bytes, if it would."""

    @classmethod
    def open(
        cls, folder: Path, sha256: str | None = None, raw: Path | None = None, modules: Collection[str] | None = None
    ) -> PlannedShards:
        """Open a plan. Raise InputError if its raw files are not on this machine: every row would become a reject.

        With `modules`, only functions of these modules may give rows. Without it the plan must be the one with this
        SHA-256, which came from the process that planned.
        """
        plan = PlanFolder.open(folder, sha256)
        text = plan.facts.source
        with _valid(folder):
            check_portable(text, () if sha256 is None and modules is None else modules)
            if raw is not None:
                text = moved(text, plan.facts.raw, raw)
            _check_there(path_of(text))
            return cls(plan, text)

    def build(self, number: int, out: Path | Outbox, pool: Pool) -> Receipt:
        """Build a shard and its receipt below `out`."""
        with closing(self.build_all([number], out, pool)) as answers:
            ((_, receipt),) = answers
        return receipt

    def build_all(
        self, numbers: Iterable[int], out: Path | Outbox, pool: Pool
    ) -> Generator[tuple[int, Receipt], None, None]:
        """Build shards, and yield the number and the receipt of each when it is in `out`. Closing it stops the rest."""
        self._reopened.prepare()
        folder = out.folder if isinstance(out, Outbox) else out
        jobs = (ShardJob(number, self.plan.spec(number), self._source, folder) for number in numbers)
        with closing(pool.run(jobs, pool.workers)) as built:
            yield from out.sent(built) if isinstance(out, Outbox) else built

    def close(self) -> None:
        """Delete what was made for the workers. Who ends in order need not do so."""
        self._reopened.close()


def open_out(out: str, scratch: Path | None, slots: int) -> AbstractContextManager[Path | Outbox]:
    """Open OUT for shards that are built here: a folder, or a URL to which `slots` shards are sent at a time."""
    url = url_of(out)
    return nullcontext(Path(out)) if url is None else open_outbox(url, scratch, slots)


@contextmanager
def _valid(folder: Path) -> Iterator[None]:
    """Turn the errors of a text that no source gave into one that names the plan."""
    try:
        yield
    except ReadError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DamagedError(f"{folder / PLAN}: its source cannot be opened ({type(error).__name__}: {error})") from error


def _check_there(location: str) -> None:
    """Raise InputError if nothing is at the path or the URL of a source; an empty text is a source without one."""
    if is_url(location):
        if next(iter(open_store(location).list("")), None) is None:
            raise InputError(f"{location}: holds no objects; correct the plan, or give --raw")
        return
    path = Path(location or "/")
    if not path.exists() or (path.is_dir() and next(path.iterdir(), None) is None):
        raise InputError(f"{path}: the raw files are not on this machine; mount them there, or give --raw")
