"""AWS's list prices, from the one file that holds them: `prices.json`, each with its source and the day it was read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

FILE = Path(__file__).with_name("prices.json")


@dataclass(frozen=True)
class Price:
    """One list price.

    Parameters
    ----------
    dollars, per
        So many dollars for so many units.
    unit
        What one unit is.
    source, read, evidence
        Where it stands, the day it was looked up, and how it could be checked: a key of `PriceList.evidence`.
    note
        What else holds.
    """

    dollars: float
    per: int
    unit: str
    source: str
    read: date
    evidence: str
    note: str = ""

    @property
    def each(self) -> float:
        """Dollars of one unit."""
        return self.dollars / self.per


@dataclass(frozen=True)
class PriceList:
    """The prices of a region, by name, and what the marks of their evidence mean."""

    region: str
    prices: Mapping[str, Price]
    evidence: Mapping[str, str]

    def each(self, name: str) -> float:
        """Dollars of one unit.

        Raises
        ------
        KeyError
            There is no such price.
        """
        return self.prices[name].each


def read(text: str) -> PriceList:
    """The prices that a text holds.

    Raises
    ------
    ValueError
        A price lacks something, or its evidence is a mark that is not explained; the text says which.
    """
    told = json.loads(text)
    return PriceList(
        region=told["region"],
        prices=MappingProxyType(
            {name: _price(name, entry, told["evidence"]) for name, entry in told["prices"].items()}
        ),
        evidence=MappingProxyType(told["evidence"]),
    )


@cache
def prices() -> PriceList:
    """The prices of `prices.json`."""
    return read(FILE.read_text(encoding="utf-8"))


def _price(name: str, entry: dict[str, Any], evidence: Mapping[str, str]) -> Price:
    try:
        price = Price(**{**entry, "read": date.fromisoformat(entry["read"])})
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{FILE.name}, {name}: {error}") from error
    if price.dollars < 0 or price.per < 1 or not price.source.startswith("https://"):
        raise ValueError(f"{FILE.name}, {name}: a price has dollars, per and an https:// source")
    if price.evidence not in evidence:
        raise ValueError(f"{FILE.name}, {name}: evidence is one of {', '.join(evidence)}")
    return price
