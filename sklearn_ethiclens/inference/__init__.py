"""Intervals, tests and power for counts: everything here takes counts, or a function of counts, and knows no metric."""

from sklearn_ethiclens.inference._gap_intervals import (
    largest_gap_interval,
    mean_gap_interval,
    mean_rate_interval,
)
from sklearn_ethiclens.inference._index_intervals import f1_interval, mover_ratio_interval, theil_interval
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
from sklearn_ethiclens.inference._scores import (
    CalibrationError,
    auc_interval,
    auc_pvalue,
    auc_variance,
    bounded_mean_interval,
    calibration_error_interval,
    mover_difference_interval,
)
from sklearn_ethiclens.inference._stratified import (
    breslow_day_test,
    cmh_test,
    mantel_haenszel_difference,
    mantel_haenszel_odds_ratio,
    mantel_haenszel_ratio,
)
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
    "CalibrationError",
    "Interval",
    "adjust_pvalues",
    "auc_interval",
    "auc_pvalue",
    "auc_variance",
    "bootstrap_bounds",
    "bootstrap_interval",
    "bounded_mean_interval",
    "calibration_error_interval",
    "breslow_day_test",
    "chi2_test",
    "clopper_pearson_interval",
    "cmh_test",
    "cohens_h",
    "f1_interval",
    "fisher_exact_test",
    "half_width",
    "katz_interval",
    "koopman_interval",
    "largest_gap_interval",
    "mantel_haenszel_difference",
    "mantel_haenszel_odds_ratio",
    "mantel_haenszel_ratio",
    "max_t_pvalues",
    "mcnemar_test",
    "mean_gap_interval",
    "mean_interval",
    "mean_rate_interval",
    "miettinen_nurminen_difference_interval",
    "miettinen_nurminen_ratio_interval",
    "minimum_detectable_difference",
    "mover_difference_interval",
    "mover_ratio_interval",
    "newcombe_interval",
    "power_label",
    "power_two_proportions",
    "sample_size_rate",
    "sample_size_two_proportions",
    "theil_interval",
    "two_proportion_test",
    "two_proportion_ztest",
    "wald_difference_interval",
    "wilson_interval",
]
