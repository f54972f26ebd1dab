"""
A first audit
=============

Does a credit model approve younger applicants less often, and can this sample tell?
The bundled German Credit data, a logistic regression, out-of-fold predictions.
"""

# %%
# Predictions are all an audit needs: labels, decisions, and the group of each row.
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sklearn_ethiclens import audit, load_german_credit

data = load_german_credit()
numbers = list(data.data.select_dtypes("number"))
words = [name for name in data.data if name not in numbers]
model = make_pipeline(
    make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), words)),
    LogisticRegression(max_iter=1000),
)
folds = StratifiedKFold(5, shuffle=True, random_state=0)
decisions = cross_val_predict(model, data.data, data.target, cv=folds)

found = audit(
    data.target,
    decisions,
    sensitive_features=data.sensitive_features,
    pos_label=data.pos_label,
    reference=data.reference,
)
print(found)

# %%
# The verdict is *inconclusive*: the ratio of approval rates is 0.83, and its interval holds 0.80. Neither a violation nor
# its absence is shown by these 149 people under 25.
print(found.frame().query("metric == 'disparate_impact'")[["value", "low", "high", "verdict", "reason"]])

# %%
# The audit keeps its counts, so that another policy can judge them without the data.
for policy in ("four_fifths", "eeoc"):
    print(policy, "->", found.rejudge(policy).verdict)

# %%
# A picture of the comparisons: the estimate, its interval, and the value of equal treatment.
import matplotlib.pyplot as plt

shown = [
    "statistical_parity_difference",
    "true_positive_rate_difference",
    "false_positive_rate_difference",
    "precision_difference",
]
rows = found.frame().set_index("metric").loc[shown]
figure, axes = plt.subplots(figsize=(7, 2.6), layout="constrained")
axes.errorbar(
    rows["value"],
    range(len(rows)),
    xerr=[rows["value"] - rows["low"], rows["high"] - rows["value"]],
    fmt="o",
    capsize=3,
    color="#0b5394",
)
axes.axvline(0, color="0.4", linewidth=1)
axes.set_yticks(range(len(rows)), [name.replace("_", " ") for name in shown])
axes.margins(y=0.2)
axes.invert_yaxis()
axes.set_xlabel("age < 25 minus age >= 25, with 95% interval")
plt.show()

# %%
# What this does not show: whether the labels themselves treat groups alike. Every row here is a credit that was granted,
# and the label is its repayment; whom the bank refused is not in the data.
