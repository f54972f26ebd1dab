"""The picture of a search: what is drawn is what is in the table; no display is needed, and matplotlib only to draw."""

import subprocess
import sys

import numpy as np
import pytest

from sklearn_ethiclens import pareto_frontier
from sklearn_ethiclens.plotting import TradeoffDisplay
from tests.test_selection import GAP, RATIO, results

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

NAN = float("nan")
TABLE = results([0.6, 0.7, 0.65, 0.5, 0.8, 0.62], [0.02, 0.1, 0.2, NAN, 0.0, NAN], rate=[0.5, 0.5, 0.5, 0.5, 1.0, 0.0])


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_the_data_are_those_of_the_frontier_table():
    display = TradeoffDisplay.from_cv_results(TABLE, **GAP)
    expected = pareto_frontier(TABLE, **GAP)
    assert display.table.equals(expected)
    assert (display.performance, display.disparity) == ("accuracy", "selection_rate_difference")
    x, y = display.frontier_.get_data()
    assert np.asarray(x).tolist() == [0.02, 0.1]
    assert np.asarray(y).tolist() == [0.6, 0.7]
    on, other = display.points_
    assert np.asarray(on.lines[0].get_xdata()).tolist() == [0.1, 0.02]
    assert np.asarray(other.lines[0].get_xdata()).tolist() == [0.2]
    assert on.has_xerr
    assert on.has_yerr


def test_bars_are_the_standard_deviations_over_folds():
    display = TradeoffDisplay.from_cv_results(TABLE, **GAP)
    horizontal, vertical = display.points_[1].lines[2]
    (line,) = horizontal.get_segments()
    assert np.ptp(line[:, 0]) == pytest.approx(2 * 0.02)
    (line,) = vertical.get_segments()
    assert np.ptp(line[:, 1]) == pytest.approx(2 * 0.01)


def test_those_not_to_be_chosen_are_marked_with_the_reason():
    said = legend(TradeoffDisplay.from_cv_results(TABLE, **GAP))
    assert "not to be chosen (1): a fold could not be scored, drawn at the right edge" in said
    assert "not to be chosen (2): predicts one class for every row" in said  # one of them has a place


def test_the_chosen_one_is_marked_with_its_parameters():
    display = TradeoffDisplay.from_cv_results(TABLE, **GAP, chosen=np.int64(1))
    assert "chosen: C=1" in legend(display)
    assert display.ax_.collections[-1].get_offsets().tolist() == [[0.1, 0.7]]
    assert not any(text.startswith("chosen") for text in legend(TradeoffDisplay.from_cv_results(TABLE, **GAP)))
    with pytest.raises(ValueError, match="chosen must be the position of one of the 6 candidates; got 6"):
        TradeoffDisplay.from_cv_results(TABLE, **GAP, chosen=6)


def test_the_axes_say_which_way_is_better():
    gap = TradeoffDisplay.from_cv_results(TABLE, **GAP)
    assert gap.ax_.get_xlabel() == "← selection rate difference, smaller is better"
    assert gap.ax_.get_ylabel() == "accuracy, greater is better →"
    ratio = TradeoffDisplay.from_cv_results(results([0.6, 0.7], [0.9, 0.8], "disparate_impact"), **RATIO)
    assert ratio.ax_.get_xlabel() == "disparate impact, greater is better →"
    assert ratio.is_ratio
    assert ratio.frontier_.get_drawstyle() == "steps-pre"
    assert gap.frontier_.get_drawstyle() == "steps-post"


def test_it_has_the_shape_of_displays_of_scikit_learn():
    figure, axes = plt.subplots()
    display = TradeoffDisplay.from_cv_results(TABLE, **GAP, ax=axes)
    assert display.ax_ is axes
    assert display.figure_ is figure
    again = TradeoffDisplay(display.table, performance="accuracy", disparity="selection_rate_difference")
    assert not hasattr(again, "ax_")
    assert again.plot() is again
    assert again.figure_ is not figure
    assert repr(again) == "TradeoffDisplay(6 candidates, 2 on the frontier of accuracy and selection_rate_difference)"


def test_a_search_without_a_usable_candidate_still_has_a_picture():
    display = TradeoffDisplay.from_cv_results(results([0.6, NAN], [NAN, NAN]), **GAP)
    assert display.points_ == [None, None]
    assert "not to be chosen (2): a fold could not be scored" in legend(display)


def test_colours_are_told_apart_without_colour():
    """Luminance differs, or the shape does."""
    display = TradeoffDisplay.from_cv_results(TABLE, **GAP, chosen=1)
    shapes = {container.lines[0].get_marker() for container in display.points_}
    assert len(shapes) == 2
    markers = {
        tuple(map(tuple, c.get_paths()[0].vertices.round(3).tolist()))
        for c in display.ax_.collections
        if len(c.get_offsets()) and c.get_paths() and len(c.get_paths()[0].vertices) < 60 and hasattr(c, "get_sizes")
    }
    assert len(markers) >= 3


def test_it_draws_to_a_file_without_a_display(tmp_path):
    TradeoffDisplay.from_cv_results(TABLE, **GAP, chosen=1).figure_.savefig(tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 5000


BLOCKED = """
import sys
sys.modules["matplotlib"] = None
sys.modules["matplotlib.pyplot"] = None
from sklearn_ethiclens.plotting import TradeoffDisplay
results = {"params": [{}], "mean_test_a": [1.0], "mean_test_gap": [-0.1]}
try:
    TradeoffDisplay.from_cv_results(results, performance="a", disparity="gap")
except ImportError as error:
    print(error)
"""


def test_without_matplotlib_the_error_says_how_to_get_it():
    run = subprocess.run([sys.executable, "-c", BLOCKED], capture_output=True, text=True, check=True)
    assert (
        run.stdout.strip() == 'drawing needs matplotlib, which is not installed: pip install "sklearn-ethiclens[plot]"'
    )
