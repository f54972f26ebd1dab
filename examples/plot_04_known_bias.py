"""
Does an audit find the bias that is there?
==========================================

On real data nobody knows the true disparity, so no audit of it can be checked. ``BiasInjector`` draws data whose disparity
is known exactly. We audit a sample, ask how often samples of each size would be flagged, and train a model on labels of
known bias.
"""

# %%
# A population: 40% women, of whom half are qualified, as of the men. Qualified women are selected less often, and women
# 0.7 times as often as men. What we did not state follows: the false positive rate of women. ``truth`` is exact.
from sklearn_ethiclens import BiasInjector, audit, audit_tally

injector = BiasInjector(
    {"F": 0.4, "M": 0.6},
    attribute="sex",
    base_rate=0.5,
    true_positive_rate={"F": 0.6, "M": 0.8},
    selection_rate=0.5,
    disparate_impact=0.7,
    reference="M",
)
print(injector.population.round(3).T)

# %%
# One sample, audited. The true value lies within the intervals here; a 95% interval misses it in one sample of twenty.
data = injector.sample(2000)
found = audit(data.y, data.y_pred, sensitive_features=data.sensitive_features, reference=data.reference).frame()
both = data.truth.frame(["disparate_impact", "statistical_parity_difference", "equalized_odds_difference"]).merge(
    found, on=["attribute", "group", "reference", "metric"], suffixes=("_true", "")
)
print(both[["metric", "value_true", "value", "low", "high"]].round(3).to_string(index=False))

# %%
# How large must a sample be? An audit needs counts only, so the samples are drawn as tallies. A ratio of 0.70 should be
# flagged by the four-fifths rule; one of exactly 0.80 only by the error of the interval, one time in forty. With 200 rows
# nothing is judged: fewer than 100 of them are women.
import matplotlib.pyplot as plt

from sklearn_ethiclens import Verdict

sizes, n_sets = [200, 500, 1000, 2000, 4000], 30
share = {}
for ratio in (0.7, 0.8):
    injector.set_params(disparate_impact=ratio)
    for n in sizes:
        flagged = 0
        for seed in range(n_sets):
            tally = injector.sample_tally(n, random_state=seed)
            result = audit_tally(tally, reference="M", metrics=["disparate_impact"], n_resamples=500)
            flagged += any(f.metric == "disparate_impact" and f.verdict is Verdict.FLAGGED for f in result.findings)
        share[ratio, n] = flagged / n_sets

figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
for ratio, marker in ((0.7, "o"), (0.8, "s")):
    axes.plot(sizes, [share[ratio, n] for n in sizes], marker=marker, label=f"true ratio {ratio:.2f}")
axes.set_xscale("log")
axes.set_xticks(sizes, sizes)
axes.minorticks_off()
axes.set_ylim(-0.02, 1.02)
axes.set_xlabel("rows of the sample")
axes.set_ylabel("share of samples flagged")
axes.legend(frameon=False)
plt.show()

# %%
# Bias can sit in the labels. Here 40% of the positives of group b are recorded as negative, and a proxy tells who is in b.
# A model trained on the recorded labels learns that bias, and an audit against the same labels shows a part of it only: that
# *unqualified* people of b are selected less often than those of a does not show, because many who are recorded as unqualified
# are not. Real data has the first of these two lines only.
from sklearn.linear_model import LogisticRegression

from sklearn_ethiclens import make_biased_classification

made = make_biased_classification(
    20_000, 6, base_rate=0.5, label_bias={"b": 0.4}, proxy_strength=0.9, return_bunch=True, random_state=0
)
model = LogisticRegression().fit(made.X[:10_000], made.y[:10_000])
decisions, people = model.predict(made.X[10_000:]), made.sensitive_features[10_000:].reset_index(drop=True)
print(f"recorded labels of b over a: {made.truth.value('disparate_impact', 'b'):.2f}")
for name in ("y", "y_true"):
    labels = made[name][10_000:].to_numpy()
    frame = audit(labels, decisions, sensitive_features=people, reference="a").frame().set_index("metric")["value"]
    print(
        f"{name:7s} d TPR {frame['true_positive_rate_difference']:+.2f}  d FPR {frame['false_positive_rate_difference']:+.2f}"
    )

# %%
# What this does not show: that an audit is right about real people. The data meet every assumption that rows are drawn
# independently from one population; real samples are selected, clustered and mislabelled in ways nobody has written down.
