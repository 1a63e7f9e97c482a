"""Jobs: a shard to build or a pair to inspect, tried again when the worker that runs it dies."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Protocol, TypeVar

from packer.errors import EngineError
from packer.recipe.shard_spec import ShardSpec
from packer.workers.inspect import Glance, Question
from packer.workers.messages import GlanceTask, ShardTask, read_glance, read_receipt
from readers.contract.receipt import Receipt

MOST_FAILURES = 3
"""How often workers may die at a case without a picture being found that is to blame."""
MOST_DEATHS = 2
"""At how many deaths a picture must have been alone in work to be condemned: once may be anybody's kill."""

Answer_co = TypeVar("Answer_co", covariant=True)


class Case(Protocol[Answer_co]):
    """What the supervisor needs to know."""

    @property
    def number(self) -> int:
        """Which case it is, of those that were handed in together."""

    def task(self) -> str:
        """What a worker is to do next, as JSON."""

    def read(self, text: str) -> Answer_co | None:
        """What a worker answered; None where there is more to do. Errors of a worker are raised here."""

    def died(self, places: Sequence[int], cause: str) -> None:
        """The worker died with these places in work. Raises where nothing is learnt by trying again."""


class GlanceCase:
    """One question; after two deaths of workers that were looking at its pair, its answer is why."""

    def __init__(self, number: int, question: Question) -> None:
        self.number = number
        self._question = question
        self._deaths = self._failures = 0
        self._cause: str | None = None

    def task(self) -> str:
        return GlanceTask(self._question, self._cause).to_text()

    def read(self, text: str) -> Glance:
        return read_glance(text)

    def died(self, places: Sequence[int], cause: str) -> None:
        self._failures += 1
        self._deaths += bool(places)
        if self._deaths >= MOST_DEATHS:
            files = [path for path in (self._question.image, self._question.label) if path is not None]
            self._cause = f"{' or '.join(files)}: {cause}"
        if self._failures > MOST_FAILURES:
            raise EngineError(f"a worker process died {self._failures} times at {self._question.label}")


class ShardCase:
    """Which task comes next for a shard, and which pairs are condemned.

    After a death the pairs are swept: decoded in one thread, going on behind each pair at which the worker dies. Each
    of these is then tried alone. So hostile pairs cost a worker or two each, but not the work of the shard each time,
    and the reason is found in the same way for any number of threads.
    """

    def __init__(self, number: int, spec: ShardSpec) -> None:
        self.number = number
        self._spec = spec
        self._condemned: dict[int, str] = {}
        self._to_sweep: list[int] = []
        self._to_try: list[int] = []
        self._deaths: Counter[int] = Counter()
        self._failures = 0
        self._pictures: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for place, piece in enumerate(spec.pieces):
            self._pictures[piece.files].append(place)

    def task(self) -> str:
        return self.next_task().to_text()

    def next_task(self) -> ShardTask:
        """What is to be done next."""
        if self._to_sweep:
            return ShardTask(self._spec, places=tuple(self._to_sweep))
        if self._to_try:
            return ShardTask(self._spec, places=tuple(self._picture_at(self._to_try[0])))
        return ShardTask(self._spec, dict(sorted(self._condemned.items())))

    def read(self, text: str) -> Receipt | None:
        receipt = read_receipt(text)
        if receipt is None:
            self.passed()
        return receipt

    def passed(self) -> None:
        """The trial in work found nothing."""
        if self._to_sweep:
            self._to_sweep = []
        else:
            self._to_try = self._to_try[1:]

    def died(self, places: Sequence[int], cause: str) -> None:
        task = self.next_task()
        asked = range(len(self._spec.pieces)) if task.places is None else task.places
        places = [place for place in places if place in asked]  # a dying worker may have written anything
        if task.places is None or len(places) != 1:
            self._fail()
        if len(places) == 1:
            self._suspect(places[0], cause)
        if task.places is None and places:
            suspected = {other for place in self._to_try for other in self._picture_at(place)}
            self._to_sweep = [place for place in asked if place not in suspected and place not in self._condemned]
        elif self._to_sweep and len(places) == 1:
            self._to_sweep = [place for place in self._to_sweep if place > max(self._picture_at(places[0]))]

    def _suspect(self, place: int, cause: str) -> None:
        """A worker died with only this pair in work."""
        self._deaths[place] += 1
        if self._deaths[place] < MOST_DEATHS:
            self._to_try.append(place)
            return
        piece = self._spec.pieces[place]
        for other in self._picture_at(place):
            self._condemned[other] = f"{piece.image} or {piece.label}: {cause}"
        self._to_try = [other for other in self._to_try if other != place]
        self._failures = 0

    def _picture_at(self, place: int) -> list[int]:
        """The places of all pieces of the picture that the piece at this place is of."""
        return self._pictures[self._spec.pieces[place].files]

    def _fail(self) -> None:
        self._failures += 1
        if self._failures > MOST_FAILURES:
            first, last = self._spec.pieces[0].key, self._spec.pieces[-1].key
            raise EngineError(
                f"a worker process died {self._failures} times at the shard of {self._spec.split}/{first} to {last}, "
                "and no pair is to blame; perhaps it was killed for want of memory: try fewer --workers or a smaller "
                "--shard-size"
            )
