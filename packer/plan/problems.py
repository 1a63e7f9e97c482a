"""Gather the problems that stop a build: missing partners, class table, headers, sizes and the decoded sample."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ParamSpec, TypeVar

from packer.errors import InputError, PackError, Problem, RejectedError, TooManyRejectsError, some_are
from packer.plan.request import Limits
from packer.recipe.row_ref import RowRef
from readers.contract.fields import IMAGE, LABEL
from readers.contract.receipt_facts import count_text

T = TypeVar("T")
P = ParamSpec("P")
BEFORE = "by their headers and a decoded sample; the rest is checked later"
_CAUSE_AND_HINT = re.compile(r"((?:\([^()]*\)|[^(;])*); (.*)", re.DOTALL)
_VARYING = re.compile(r"\(.*\)|#[0-9a-f]{6,8}|'[^']*'|(?<!\d)\d+(?!\d| bits)")
"""The parts of a reason that differ from file to file."""
_ONE_STRAY = re.compile(r"^has a (colour|value) in")


class Problems:
    """The errors that stop a plan, kept until everything that can be checked was checked."""

    def __init__(self, *errors: InputError) -> None:
        self.errors = list(errors)

    def add(self, *errors: InputError) -> None:
        """Keep more errors."""
        self.errors += errors

    def attempt(self, step: Callable[P, T], *args: P.args, **options: P.kwargs) -> T | None:
        """Return what a step returns; None if it refuses."""
        try:
            return step(*args, **options)
        except InputError as error:
            self.errors.append(error)
            return None

    def check(self, rejects: PackError | None) -> None:
        """Raise the only error, or one error that has all of them. With `rejects` alone nothing is raised."""
        if not self.errors:
            return
        errors = list(self.errors)
        if isinstance(rejects, InputError):
            errors.append(rejects)
        raise errors[0] if len(errors) == 1 else JoinedError(errors)


class JoinedError(InputError):
    """Several errors in one: the message has all their messages, and `causes` has their problems."""

    def __init__(self, errors: Sequence[InputError]) -> None:
        sections = [str(error).replace("\n", "\n  ") for error in errors]
        super().__init__(f"{len(errors)} kinds of problems:", sections)
        self.exit_code = max(error.exit_code for error in errors if error.exit_code < TooManyRejectsError.exit_code)
        self.problems = tuple(problem for error in errors for problem in error.problems or (str(error),))
        self.causes = tuple(cause for error in errors for cause in _causes(error))


def _causes(error: InputError) -> Iterable[Problem]:
    """Return the causes that have files. An error without any is a cause itself."""
    return [cause for cause in error.causes if cause.files] or [Problem(str(error))]


def too_many(refs: Sequence[RowRef], bad: Mapping[int, str], limits: Limits, remark: str) -> PackError | None:
    """Return the error of more bad pairs than the limits allow, or None. `bad` has their reasons by their index."""
    if not bad or limits.allows(len(bad), len(refs)):
        return None
    return reject_error([problem_of(refs[index], reason) for index, reason in bad.items()], limits, len(refs), remark)


def reject_error(problems: Sequence[Problem], limits: Limits, pairs: int, remark: str) -> PackError:
    """Return the error of these bad pairs."""
    count = f"{some_are(len(problems), pairs, 'pair')} bad"
    if not limits.skip:
        return RejectedError(f"{count} ({remark}); fix them, or use --on-bad skip", problems)
    share = limits.most is not None and 0 < limits.most < 1
    most = "" if limits.most is None else f", over --max-bad {limits.most:{'.6g' if not share else '.4%'}}"
    return TooManyRejectsError(f"{count}{most} ({remark})", problems)


def nothing_painted(lost: Mapping[str, int], advice: str) -> InputError:
    """Return the error of annotations that become no pixel at all. `lost` has their numbers by the words of notes."""
    words = ", ".join(count_text(count, what) for what, count in lost.items())
    return InputError(f"no object of the annotations can be painted: {words}; {advice}")


def problem_of(ref: RowRef, reason: str) -> Problem:
    """Return the reason why a pair is bad as a problem of its image, its label or both."""
    files = [part for part in ref.parts if part]
    both = " or ".join(files)
    row = (ref.key, "row"), (f"{ref.split}/{ref.key}", "row")
    image_and_label = [*zip(ref.parts, (IMAGE, LABEL), strict=False)][::-1]
    further = [(path, "file") for number in range(2, len(ref.parts)) for path in ref.files(number)]
    for file, noun in ((both, "pair"), *image_and_label, *further, *row):
        if file and reason.startswith((f"{file}: ", f"{file} ")):
            text = reason[len(file) :].lstrip(": ")
            parts = _CAUSE_AND_HINT.fullmatch(text)
            cause, hint = parts.groups() if parts else (text, "")
            kind = _VARYING.sub("", cause.replace(files[-1], ""))
            return Problem(cause, hint, (file,), noun, _ONE_STRAY.sub(r"has \1s in", kind))
    return Problem(reason)
