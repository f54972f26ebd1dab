"""Displays in scikit-learn's shape: data in, drawing out; matplotlib is imported only when one is drawn."""

from sklearn_ethiclens.plotting._tradeoff import TradeoffDisplay

__all__ = ["TradeoffDisplay"]
