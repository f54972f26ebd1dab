"""Names and files of other tools: the functions of testing guides, and the configuration and JSON of GlassAlpha.

Nothing is computed here that is not computed elsewhere in the package: tallies, the catalogue of metrics and audits under the
policy "glassalpha" are read under other names. Where the other tool answers with a number that was never measured, the answer
here is NaN (in JSON: null) with the reason.
"""

from sklearn_ethiclens.compat._config import AuditConfig, ConfigError, IndividualConfig, load_config, read_config
from sklearn_ethiclens.compat._export import glassalpha_status, to_glassalpha
from sklearn_ethiclens.compat._summary import summary_sections
from sklearn_ethiclens.compat._testing import (
    FairnessAuditResult,
    FairnessCheck,
    audit_fairness,
    compute_subgroup_metrics,
    demographic_parity_ratio,
    equalized_odds_gap,
)

__all__ = [
    "AuditConfig",
    "ConfigError",
    "FairnessAuditResult",
    "FairnessCheck",
    "IndividualConfig",
    "audit_fairness",
    "compute_subgroup_metrics",
    "demographic_parity_ratio",
    "equalized_odds_gap",
    "glassalpha_status",
    "load_config",
    "read_config",
    "summary_sections",
    "to_glassalpha",
]
