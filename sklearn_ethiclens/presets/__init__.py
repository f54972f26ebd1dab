"""Presets: what regulators' rules ask to be shown of an audit, each with its source, its date and its status.

They state facts and certify nothing; none of them says that a rule is met. To add one: its rules in ``_rules.RULES``, a function
of an audit that returns sections, and an entry in ``PRESETS``.

>>> from sklearn_ethiclens import Tally, audit_tally
>>> tally = Tally.from_counts({"F": {"n": 80, "selected": 16}, "M": {"n": 20, "selected": 3}}, attribute="sex")
>>> audit_tally(tally).preset("ll144").section("ll144 selection").frame()[["category", "selection_rate", "impact_ratio"]]
  category  selection_rate  impact_ratio
0        F            0.20          1.00
1        M            0.15          0.75
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sklearn_ethiclens.presets._employment import eeoc_facts, ll144_asks, ll144_facts
from sklearn_ethiclens.presets._eu_ai_act import eu_ai_act_facts
from sklearn_ethiclens.presets._lending import lending_facts
from sklearn_ethiclens.presets._rules import NO_CERTIFICATE, RULES, LegalRule, Preset

__all__ = ["NO_CERTIFICATE", "PRESETS", "RULES", "LegalRule", "Preset", "get_preset"]

_ALL = (
    Preset(
        "ll144",
        "Selection or scoring rates and impact ratios by sex, race/ethnicity and intersection; the rule sets no limit.",
        (RULES["ll144"],),
        ll144_facts,
        policy="ll144",
        asks=ll144_asks,
        scores_decide=True,
    ),
    Preset(
        "eeoc",
        "Adverse impact: four fifths, standard deviations, Fisher's exact test, shortfall, and one more selected.",
        (RULES["ugesp"],),
        eeoc_facts,
        policy="eeoc",
    ),
    Preset(
        "eu-ai-act",
        "Facts for articles 10, 13 and 15 and Annex IV: data, performance by group, accuracy, and what an audit cannot state.",
        (RULES["eu-ai-act"],),
        eu_ai_act_facts,
    ),
    Preset(
        "lending",
        "Facts for a fair-lending review (approval by group, calibration) and for model-risk documentation.",
        (RULES["ecoa"], RULES["model-risk"]),
        lending_facts,
    ),
)

PRESETS: Mapping[str, Preset] = MappingProxyType({preset.name: preset for preset in _ALL})
"""The presets by name."""


def get_preset(name: str) -> Preset:
    """Return a preset by name.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    if isinstance(name, str) and name in PRESETS:
        return PRESETS[name]
    raise ValueError(f"preset must be one of {sorted(PRESETS)}; got {name!r}.")
