"""Data to audit: real, as Bunches that say what the label means and what they cannot show; or made, of known bias."""

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from sklearn.utils import Bunch

from sklearn_ethiclens.datasets._acs import fetch_acs, fetch_acs_income
from sklearn_ethiclens.datasets._compas import fetch_compas
from sklearn_ethiclens.datasets._download import get_data_home
from sklearn_ethiclens.datasets._german_credit import load_german_credit
from sklearn_ethiclens.datasets._protocols import (
    Protocol,
    acs_income_protocol,
    compas_protocol,
    german_credit_protocol,
)

if TYPE_CHECKING:
    from sklearn_ethiclens.datasets._inject import inject, normal_score_shift, resample
    from sklearn_ethiclens.datasets._injector import BiasInjector, make_biased_classification
    from sklearn_ethiclens.datasets._truth import Truth

__all__ = [
    "DATASETS",
    "BiasInjector",
    "Dataset",
    "Protocol",
    "Truth",
    "acs_income_protocol",
    "compas_protocol",
    "fetch_acs",
    "fetch_acs_income",
    "fetch_compas",
    "german_credit_protocol",
    "get_data_home",
    "inject",
    "load_german_credit",
    "make_biased_classification",
    "normal_score_shift",
    "resample",
]

# What makes data is imported when first asked for, so that auditing data that is there stays cheap.
_MODULES = {
    "BiasInjector": "_injector",
    "Truth": "_truth",
    "inject": "_inject",
    "make_biased_classification": "_injector",
    "normal_score_shift": "_inject",
    "resample": "_inject",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class Dataset(NamedTuple):
    """One entry of ``DATASETS``: how to load it, what it is, on what terms, and whether it comes with the package."""

    loader: Callable[..., Bunch]
    description: str
    licence: str
    source: str  # "bundled" or "fetched"


DATASETS: Mapping[str, Dataset] = MappingProxyType(
    {
        "german-credit": Dataset(
            load_german_credit,
            "1,000 granted loans and whether they were repaid, by age (Hofmann 1994)",
            "CC BY 4.0",
            "bundled",
        ),
        "compas": Dataset(
            fetch_compas,
            "6,172 people arrested in Broward County and whether they were charged again, by race and sex "
            "(ProPublica 2016)",
            "public records, no licence stated",
            "fetched",
        ),
        "acs-income": Dataset(
            fetch_acs_income,
            "working adults of one or several US states and whether their income is above 50,000 dollars, by sex and "
            "race (Ding et al. 2021)",
            "public domain, US Census Bureau",
            "fetched",
        ),
    }
)
