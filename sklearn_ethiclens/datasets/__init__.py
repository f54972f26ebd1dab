"""Real data to audit on, as Bunches that say what the label means and what the data cannot show."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from sklearn.utils import Bunch

from sklearn_ethiclens.datasets._compas import fetch_compas
from sklearn_ethiclens.datasets._download import get_data_home
from sklearn_ethiclens.datasets._german_credit import load_german_credit
from sklearn_ethiclens.datasets._protocols import Protocol, compas_protocol, german_credit_protocol

__all__ = [
    "DATASETS",
    "Dataset",
    "Protocol",
    "compas_protocol",
    "fetch_compas",
    "german_credit_protocol",
    "get_data_home",
    "load_german_credit",
]


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
    }
)
