"""Intervals, tests and power for counts: everything here takes counts, or a function of counts, and knows no metric."""

from sklearn_ethiclens.inference._intervals import (
    Interval,
    clopper_pearson_interval,
    katz_interval,
    koopman_interval,
    miettinen_nurminen_difference_interval,
    miettinen_nurminen_ratio_interval,
    newcombe_interval,
    wald_difference_interval,
    wilson_interval,
)
from sklearn_ethiclens.inference._multiplicity import max_t_pvalues
from sklearn_ethiclens.inference._paired import mean_interval
from sklearn_ethiclens.inference._power import (
    half_width,
    minimum_detectable_difference,
    power_label,
    power_two_proportions,
    sample_size_rate,
    sample_size_two_proportions,
)
from sklearn_ethiclens.inference._resampling import bootstrap_bounds, bootstrap_interval
from sklearn_ethiclens.inference._tests import (
    adjust_pvalues,
    chi2_test,
    cohens_h,
    fisher_exact_test,
    mcnemar_test,
    two_proportion_test,
    two_proportion_ztest,
)

__all__ = [
    "Interval",
    "adjust_pvalues",
    "bootstrap_bounds",
    "bootstrap_interval",
    "chi2_test",
    "clopper_pearson_interval",
    "cohens_h",
    "fisher_exact_test",
    "half_width",
    "katz_interval",
    "koopman_interval",
    "max_t_pvalues",
    "mcnemar_test",
    "mean_interval",
    "miettinen_nurminen_difference_interval",
    "miettinen_nurminen_ratio_interval",
    "minimum_detectable_difference",
    "newcombe_interval",
    "power_label",
    "power_two_proportions",
    "sample_size_rate",
    "sample_size_two_proportions",
    "two_proportion_test",
    "two_proportion_ztest",
    "wald_difference_interval",
    "wilson_interval",
]
