"""`ask_all`: every answer, in order; one thread for what answers at once, many for what waits."""

from __future__ import annotations

import threading
import time

import pytest

from packer.sources import ask_all as ask_all_module
from packer.sources.ask_all import THREADS, TOGETHER, WINDOW, ask_all


@pytest.mark.parametrize("items", [0, 1, WINDOW - 1, WINDOW, WINDOW + 1, 3 * WINDOW])
@pytest.mark.parametrize("waits", [False, True])
def test_answers_come_in_order(items: int, waits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask_all_module, "PATIENCE", 0 if waits else 10)
    monkeypatch.setattr(ask_all_module, "WAITING", -1 if waits else 10)
    assert list(ask_all(lambda item: item * 2, iter(range(items)))) == [2 * item for item in range(items)]


def test_what_answers_at_once_is_asked_by_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask_all_module, "PATIENCE", 1000)
    threads = set(ask_all(lambda item: threading.get_ident(), range(1000)))
    assert threads == {threading.get_ident()}


def test_many_threads_ask_for_what_waits() -> None:
    """The first answer waits too long, the next ones wait for each other: one thread alone would wait for ever."""
    together = threading.Barrier(THREADS, timeout=60)

    def ask(item: int) -> int:
        if item == 0:
            time.sleep(2 * ask_all_module.PATIENCE)
        else:
            together.wait()
        return threading.get_ident()

    first, *others = ask_all(ask, range(1 + 4 * THREADS))
    assert first == threading.get_ident()
    assert len(set(others)) == THREADS
    assert first not in others


def test_one_thread_tries_again_after_many_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask_all_module, "PATIENCE", 0)
    monkeypatch.setattr(ask_all_module, "WAITING", -1)  # each answer of one thread counts as slow
    threads = list(ask_all(lambda item: threading.get_ident(), range(2 * (1 + TOGETHER))))
    mine = [number for number, thread in enumerate(threads) if thread == threading.get_ident()]
    assert mine == [0, 1 + TOGETHER]


def test_no_more_is_asked_than_is_taken() -> None:
    asked: list[int] = []
    answers = ask_all(asked.append, range(100))
    next(answers)
    del answers
    assert asked == [0]


def test_an_error_of_an_answer_reaches_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    for waiting in (10, -1):
        monkeypatch.setattr(ask_all_module, "PATIENCE", 10 if waiting > 0 else 0)
        monkeypatch.setattr(ask_all_module, "WAITING", waiting)
        with pytest.raises(ZeroDivisionError):
            list(ask_all(lambda item: 1 // (5 - item), range(10)))
