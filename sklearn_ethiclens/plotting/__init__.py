"""Displays in scikit-learn's shape: data in, drawing out; matplotlib is imported only when one is drawn.

A display draws what an audit, a reliability table or a search has found, and decides nothing itself. ``CalibrationDisplay``
is not exported from the package: scikit-learn has a class of that name.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from sklearn_ethiclens.plotting._calibration import CalibrationDisplay
from sklearn_ethiclens.plotting._counterfactual import CounterfactualDisplay
from sklearn_ethiclens.plotting._disparity import DisparityDisplay
from sklearn_ethiclens.plotting._impossibility import ImpossibilityDisplay
from sklearn_ethiclens.plotting._rates import GroupRatesDisplay
from sklearn_ethiclens.plotting._tradeoff import TradeoffDisplay

__all__ = [
    "DISPLAYS",
    "CalibrationDisplay",
    "CounterfactualDisplay",
    "DisparityDisplay",
    "GroupRatesDisplay",
    "ImpossibilityDisplay",
    "TradeoffDisplay",
    "draw",
]

DISPLAYS: Mapping[str, Any] = MappingProxyType(
    {
        "disparity": DisparityDisplay,
        "rates": GroupRatesDisplay,
        "calibration": CalibrationDisplay,
        "impossibility": ImpossibilityDisplay,
    }
)
"""The displays of an audit by name."""


def draw(audit: Any, kind: str = "disparity", *, ax: Any = None, **options: Any) -> Any:
    """Return the drawn display of an audit.

    Parameters
    ----------
    audit : Audit
        Anything with the attributes of one.
    kind : str, default="disparity"
        A name in ``DISPLAYS``.
    ax : matplotlib Axes, optional
        Where to draw; default: a new figure.
    **options
        Of the display's ``from_audit``.

    Returns
    -------
    display

    Raises
    ------
    ValueError
        If there is no such display.
    """
    if kind not in DISPLAYS:
        raise ValueError(f"kind must be one of {list(DISPLAYS)}; got {kind!r}.")
    return DISPLAYS[kind].from_audit(audit, ax=ax, **options)
