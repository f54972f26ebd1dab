"""The rules that presets report on: source, date and status of each, in one table, and the sections that state them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from sklearn_ethiclens._findings import Section

UNKNOWN = "not known from this audit"
NO_CERTIFICATE = "Facts, not a certificate: whether a rule is met is not said here."
_AS_OF = "November 2026"


@dataclass(frozen=True)
class LegalRule:
    """A law, regulation or guidance: where it stands, and what its status was when this was last looked up.

    Parameters
    ----------
    title : str
        What it is called.
    citation : str
        Where it is found.
    date : str
        When it was made, and took effect where that differs.
    status : str
        In force, under rescission, and the like.
    as_of : str
        The month that ``status`` is of.
    """

    title: str
    citation: str
    date: str
    status: str
    as_of: str

    @property
    def lines(self) -> tuple[str, str]:
        """What to say of it: source and date, then the status with the month it is of."""
        return (
            f"Rule: {self.title}. Source: {self.citation}. Date: {self.date}.",
            f"Status as of {self.as_of}: {self.status}.",
        )


RULES: Mapping[str, LegalRule] = MappingProxyType(
    {
        "ll144": LegalRule(
            "New York City Local Law 144 of 2021, automated employment decision tools",
            "NYC Administrative Code 20-870 to 20-874; 6 RCNY 5-300 to 5-304",
            "law of 2021; rule adopted on 6 April 2023, enforced since 5 July 2023",
            "in force",
            _AS_OF,
        ),
        "ugesp": LegalRule(
            "Uniform Guidelines on Employee Selection Procedures",
            "29 CFR 1607; Questions and Answers, 44 Fed. Reg. 11996",
            "1978; Questions and Answers 2 March 1979",
            "under rescission by the EEOC",
            _AS_OF,
        ),
        "eu-ai-act": LegalRule(
            "Artificial Intelligence Act of the European Union",
            "Regulation (EU) 2024/1689, articles 10, 13 and 15, Annex IV",
            "13 June 2024",
            "in force; the duties for high-risk systems of Annex III apply from December 2027",
            _AS_OF,
        ),
        "ecoa": LegalRule(
            "Equal Credit Opportunity Act and Regulation B",
            "15 U.S.C. 1691 to 1691f; 12 CFR 1002, as amended by the rule published on 22 April 2026",
            "1974; amendment effective 21 July 2026",
            "in force; the federal effects test (disparate impact) is removed from July 2026, state law stays",
            _AS_OF,
        ),
        "model-risk": LegalRule(
            "Guidance on Model Risk Management",
            "Federal Reserve SR 26-2 and OCC Bulletin 2026-13",
            "17 April 2026, in place of SR 11-7 of 4 April 2011 and OCC Bulletin 2011-12",
            "supervisory guidance of the federal banking agencies, no regulation",
            _AS_OF,
        ),
    }
)
"""The rules by name."""


@dataclass(frozen=True)
class Preset:
    """What a regulator's rule asks to be shown: a policy where one belongs to it, and further sections of an audit.

    Parameters
    ----------
    name : str
        As ``PRESETS`` and the command line have it.
    description : str
        What it shows.
    rules : tuple of LegalRule
        What it reports on.
    facts : callable
        ``facts(audit)`` returns its sections but for the first, which states the rules.
    policy : str or None
        The policy that belongs to it.
    asks : callable, optional
        ``asks(audit)`` returns sentences on what else the rules ask for.
    scores_decide : bool
        Whether scores above their median stand for decisions where none are given.
    """

    name: str
    description: str
    rules: tuple[LegalRule, ...]
    facts: Callable[[Any], tuple[Section, ...]]
    policy: str | None = None
    asks: Callable[[Any], tuple[str, ...]] | None = None
    scores_decide: bool = False

    @property
    def key(self) -> str:
        """Key of its first section."""
        return f"preset {self.name}"

    def sections(self, audit: Any) -> tuple[Section, ...]:
        """Return what it adds to an audit.

        Parameters
        ----------
        audit : Audit
            Anything with the attributes of one.

        Returns
        -------
        tuple of Section
            The rules with their sources, dates and status; then the facts.
        """
        asks = () if self.asks is None else self.asks(audit)
        stated = tuple(line for rule in self.rules for line in rule.lines)
        lines = (NO_CERTIFICATE, *stated, self._policy_words(audit.policy.name), *asks)
        return (Section(self.key, f"Preset {self.name}: {self.rules[0].title}", lines), *self.facts(audit))

    def _policy_words(self, name: str) -> str:
        if self.policy is None:
            return (
                f"Policy of this audit: {name}. None belongs to this preset: its limits are no part of the rules above."
            )
        if name == self.policy:
            return f"Policy of this audit: {name}, which belongs to this preset."
        return (
            f"Policy of this audit: {name}, chosen in place of {self.policy}, which belongs to this preset; the limits of {name} "
            f"are no part of the rule above."
        )
