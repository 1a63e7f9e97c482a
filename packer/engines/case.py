"""A case: one piece of work on its way to an answer, through the deaths of the workers that it is handed to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

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
