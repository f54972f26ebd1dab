"""The bar: on a terminal or in a notebook, after the wait, never with silence asked for, and never in a file."""

import sys
import types
from contextlib import redirect_stderr

import pytest

from sklearn_ethiclens import _progress
from sklearn_ethiclens._progress import silent, with_bar


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(_progress, "PATIENCE", -1.0)


class Terminal:
    """Standard error as a terminal: what is written, kept."""

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text

    def flush(self):
        pass

    def isatty(self):
        return True


def drawn(done, total, words, **options):
    """What a terminal is sent while the work is done."""
    seen = Terminal()
    with redirect_stderr(seen):
        list(with_bar(done, total, words, **options))
    return seen.text


def test_results_are_those_of_the_work(impatient):
    with redirect_stderr(Terminal()):
        assert list(with_bar(iter("abc"), 3, "letters")) == ["a", "b", "c"]
        assert list(with_bar([], 0, "nothing")) == []


def test_a_bar_is_drawn_on_a_terminal(impatient):
    assert "parts" in drawn(range(3), 3, "parts")


def test_a_bar_counts_the_size_of_results(impatient, monkeypatch):
    shown = []
    monkeypatch.setattr(_progress._Bar, "show", lambda self, amount: shown.append(amount))
    drawn([b"ab", b"cde"], 5, "bytes", size=len)
    assert shown == [2, 5]


def test_of_an_unknown_total_a_bar_is_drawn_too(impatient):
    assert "who knows" in drawn(range(3), None, "who knows")


def test_nothing_is_drawn_into_a_file(impatient, capsys):
    list(with_bar(range(3), 3, "parts"))
    assert capsys.readouterr().err == ""


def test_nothing_is_drawn_before_the_wait(monkeypatch):
    monkeypatch.setattr(_progress, "PATIENCE", 60.0)
    assert drawn(range(3), 3, "parts") == ""


def test_silence_lasts_as_long_as_its_block_and_is_not_broken_from_within(impatient):
    with silent(), silent(False):
        assert drawn(range(3), 3, "parts") == ""
    with silent(False):
        assert "parts" in drawn(range(3), 3, "parts")


@pytest.mark.parametrize("widgets", [True, False])
def test_in_a_notebook_a_bar_needs_widgets(monkeypatch, widgets):
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    monkeypatch.setattr(_progress, "find_spec", lambda name: object() if widgets else None)
    assert _progress._can_be_seen() == widgets


def test_a_bar_is_taken_away_when_the_work_fails(impatient, monkeypatch):
    stopped, stop = [], _progress._Bar.stop

    def noted(bar):
        stopped.append(True)
        stop(bar)  # or its thread would draw on in the tests that come after

    monkeypatch.setattr(_progress._Bar, "stop", noted)

    def work():
        yield 1
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        drawn(work(), 2, "parts")
    assert stopped == [True]
