"""
Pictures of an audit
====================

Which picture answers which question? The bundled German Credit data, a logistic regression on a few of its columns,
out-of-fold predictions.
"""

# %%
# One audit holds all that is drawn below: decisions, labels and scores.
import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_ethiclens import DisparityDisplay, audit, load_german_credit

data = load_german_credit()
numbers = data.data.select_dtypes("number")
model = make_pipeline(StandardScaler(), LogisticRegression())
folds = StratifiedKFold(5, shuffle=True, random_state=0)
probabilities = cross_val_predict(model, numbers, data.target, cv=folds, method="predict_proba")
labels = sorted(set(data.target))
score = probabilities[:, labels.index(data.pos_label)]
(refused,) = set(labels) - {data.pos_label}
decisions = [data.pos_label if value >= 0.7 else refused for value in score]

found = audit(
    data.target,
    decisions,
    y_score=score,
    sensitive_features=data.sensitive_features,
    pos_label=data.pos_label,
    reference=data.reference,
)

# %%
# Which comparisons does the policy flag, and how sure is that? Each row is a comparison with its interval; what the policy
# accepts is shaded, and the verdict is a word and a shape beside its colour.
found.plot(name="logistic regression")
plt.show()

# %%
# How often does each group get a decision, and of how many people do we know it? Rates by group, with Wilson
# intervals and counts.
found.plot("rates")
plt.show()

# %%
# Does a score mean the same for everybody? How often came true what was scored, by group, over the number of rows of each bin.
found.plot("calibration", n_bins=5)
plt.show()

# %%
# Can precision and false positive rates be equal? Each group's base rate and true positive rate leave it one curve to move on.
# Hollow marks show where it would have the reference's precision or false positive rate: having both would need other base rates.
found.plot("impossibility")
plt.show()

# %%
# A display keeps its data in ``table`` and can be drawn again, into axes of your own or from predictions directly.
display = DisparityDisplay.from_predictions(
    data.target,
    decisions,
    sensitive_features=data.sensitive_features,
    pos_label=data.pos_label,
    reference=data.reference,
    metric=["disparate_impact"],
)
print(display.table[["group", "reference", "value", "low", "high", "verdict"]])

# %%
# What this does not show: why the groups differ. A picture of a gap is where to begin to look, and an interval holds the
# chance of sampling only.
