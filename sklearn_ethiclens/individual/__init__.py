"""Individual level: are people who are alike given like scores? Consistency, matched pairs, violations of a similarity.

Nothing here holds an n x n matrix, and nothing is approximate without saying so: neighbours are exact, in blocks;
percentiles and totals over more than a million pairs are estimated from a million drawn with a stated seed.

Distances
---------
Every function takes the same ``metric``:

``"mixed"``
    Gower's distance, for features of any type: the mean over features of :math:`|a - b| / range` for numbers and of 0
    (equal) or 1 (different) for categories, in [0, 1]. A feature that is missing in either row is left out for that pair.
``"euclidean"``, ``"mahalanobis"``
    Of numbers, each divided by its standard deviation, or whitened by their covariance. Missing values and categories are
    refused, by name. These distances grow with the number of features, so thresholds such as .10 belong to ``"mixed"``.
callable
    ``metric(A, B) -> array (len(A), len(B))`` of distances between blocks of scaled numeric rows, as the functions of
    :mod:`sklearn.metrics.pairwise`. Every pair of rows is then compared: time, not memory, is quadratic.

Whether sensitive columns are among the features is the caller's choice: with them, people of different groups are never
quite alike; without them, their proxies still count. Both are defensible and give different numbers; say which.
"""

from sklearn_ethiclens.individual._consistency import ConsistencyResult, consistency_score
from sklearn_ethiclens.individual._matched import matched_pairs
from sklearn_ethiclens.individual._similarity import similarity_violations

__all__ = ["ConsistencyResult", "consistency_score", "matched_pairs", "similarity_violations"]
