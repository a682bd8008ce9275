"""Rebuild the tables that Open Bandit Pipeline prints in its examples, with our estimators, and put them side by side.

The settings are those of its documentation; what that leaves open is said below the tables. ``python -m
tools.pages.published_tables --out docs/estimator-table.md`` replaces the section of that page; it takes some minutes.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import banditree as bt
from banditree import ope

Floats = NDArray[np.float64]
Errors = dict[str, tuple[float, float]]  # {estimator: (mean, standard deviation) of the relative error}
NAMES = {
    "dm": "dm",
    "ips": "ipw",
    "snips": "snipw",
    "dr": "dr",
    "sndr": "sndr",
    "switch-dr": "switch-dr",
    "dros": "dr-os",
}

# Relative estimation errors, mean and standard deviation over runs, as printed in the READMEs of the examples
# "multiclass", "synthetic" and "obd" of Open Bandit Pipeline 0.5.
PUBLISHED: dict[str, Errors] = {
    "digits": {
        "dm": (0.436541, 0.017629),
        "ips": (0.030288, 0.024506),
        "snips": (0.022764, 0.017917),
        "dr": (0.016156, 0.012679),
        "sndr": (0.022082, 0.016865),
        "switch-dr": (0.034657, 0.018575),
        "dros": (0.015868, 0.012537),
    },
    "synthetic": {
        "dm": (0.074390, 0.024525),
        "ips": (0.009481, 0.006899),
        "snips": (0.006665, 0.004541),
        "dr": (0.006175, 0.004245),
        "sndr": (0.006118, 0.003997),
        "switch-dr": (0.006175, 0.004245),
        "dros": (0.021951, 0.013337),
    },
    "open bandit": {
        "dm": (0.156876, 0.109898),
        "ips": (0.311082, 0.311170),
        "snips": (0.311795, 0.334736),
        "dr": (0.292464, 0.315485),
        "sndr": (0.302407, 0.328434),
        "switch-dr": (0.258410, 0.160598),
        "dros": (0.159520, 0.109660),
    },
}
START, END = "<!-- published tables -->", "<!-- end of published tables -->"


def digits(runs: int = 30) -> Iterator[tuple[ope.Evaluation, float]]:
    """Handwritten digits as a bandit: a classifier with exploration logs, another one is evaluated.

    Behaviour: 0.4 logistic regression + 0.6 uniform; target: 0.9 random forest + 0.1 uniform; both are fitted on 30% of
    the rows. A reward is 1 for the right digit. The model of the reward is gradient boosting.
    """
    from sklearn.datasets import load_digits
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split

    X, labels = load_digits(return_X_y=True)
    for run in range(runs):
        rng = np.random.default_rng([12345, run])
        X_fit, X_log, y_fit, y_log = train_test_split(X, labels, test_size=0.7, random_state=run)
        one_hot = np.eye(10)
        behaviour = 0.4 * one_hot[LogisticRegression(max_iter=2000).fit(X_fit, y_fit).predict(X_log)] + 0.06
        target = 0.9 * one_hot[RandomForestClassifier(random_state=run).fit(X_fit, y_fit).predict(X_log)] + 0.01
        model = HistGradientBoostingClassifier(max_iter=30, max_leaf_nodes=15, random_state=run)
        arms = draw(behaviour, rng)
        truth = float(target[np.arange(len(y_log)), y_log].mean())
        yield evaluate(arms, (arms == y_log).astype(float), behaviour, X_log, target, model, run), truth


def synthetic(runs: int = 20) -> Iterator[tuple[ope.Evaluation, float]]:
    """30 actions, five features, 10,000 rows: rewards by a logistic function, logged by one that prefers bad arms.

    The logit is additive in context and action plus their product; coefficients are uniform on (-1, 1). Behaviour:
    softmax of -3 times the expected reward. The target is learned by weighted classification (logistic regression,
    weights reward / propensity) on other rows, and chooses by its class probabilities. The model of the reward is a
    logistic regression.
    """
    from sklearn.linear_model import LogisticRegression

    n, n_arms, dim = 10_000, 30, 5
    for run in range(runs):
        rng = np.random.default_rng([54321, run])
        shared, slopes = rng.uniform(-1, 1, (dim, 1)), rng.uniform(-1, 1, (dim, n_arms))
        slopes, levels = shared + slopes, rng.uniform(-1, 1, n_arms)

        def rows(
            rng: np.random.Generator = rng, slopes: Floats = slopes, levels: Floats = levels
        ) -> tuple[Floats, Floats, Floats, NDArray[np.intp], Floats]:
            X = rng.standard_normal((n, dim))
            means = 1 / (1 + np.exp(-(X @ slopes + levels)))
            scores = np.exp(-3 * means)
            behaviour = scores / scores.sum(axis=1, keepdims=True)
            arms = draw(behaviour, rng)
            rewards = (rng.random(n) < means[np.arange(n), arms]).astype(float)
            return X, means, behaviour, arms, rewards

        X, _, behaviour, arms, rewards = rows()
        weights = rewards / behaviour[np.arange(n), arms]
        learner = LogisticRegression(max_iter=1000).fit(X[weights > 0], arms[weights > 0], weights[weights > 0])
        X, means, behaviour, arms, rewards = rows()
        target = learner.predict_proba(X)
        truth = float((target * means).sum(axis=1).mean())
        model = LogisticRegression(max_iter=1000)
        yield evaluate(arms, rewards, behaviour, X, target, model, run), truth


def open_bandit(runs: int = 30) -> Iterator[tuple[ope.Evaluation, float]]:
    """The shop's Thompson sampling, evaluated on the random policy's log of 10,000 rows, resampled with replacement.

    The truth is the mean reward of the Thompson policy's own log. The target is Thompson sampling with the Beta priors
    that the shop's policy had. The model of the reward is a logistic regression on the user's features and the item.
    """
    from sklearn.linear_model import LogisticRegression

    tree = bt.problems.open_bandit().instance(0).tree
    with tempfile.TemporaryDirectory() as folder:
        logs = []
        for policy in ("random", "thompson"):
            ope.write_example_log(file := Path(folder) / f"{policy}.csv", policy=policy)
            columns = csv.DictReader(file.read_text(encoding="utf-8").splitlines())
            table: dict[str, list[Any]] = {name: [] for name in columns.fieldnames or ()}
            for row in columns:
                for name, value in row.items():
                    table[name].append(f"level {value}" if name.startswith("user") else value)  # they are categories
            users = [name for name in table if name.startswith("user")]
            logs.append(bt.read_log(table, arm="item", reward="click", propensity="propensity", context=users))
        bt.catalogue.write_example(items := Path(folder) / "items.csv")
        shop = bt.read_catalogue(items, arm="item", path=["category", "subcategory"], plays="plays", successes="clicks")
    assert shop.plays is not None
    assert shop.successes is not None
    prior: dict[Any, Any] = {
        arm: bt.Beta(float(successes), float(plays - successes))
        for arm, plays, successes in zip(shop.tree.arms, shop.plays, shop.successes, strict=True)
    }
    target = bt.TS(shop.tree, prior=prior, rng=0)
    chances = dict(zip(target.tree.arms, target.propensities().tolist(), strict=True))
    wanted = [chances[str(arm)] if str(arm) in chances else chances[arm] for arm in tree.arms]
    random, thompson = logs
    for run in range(runs):
        rng = np.random.default_rng([99, run])
        sample = random.rows(rng.integers(len(random), size=len(random)))
        model = LogisticRegression(max_iter=1000)
        result = bt.evaluate(sample, wanted, tree=tree, estimators=list(NAMES), model=model, rng=run)
        yield result, float(thompson.rewards.mean())


def draw(chances: Floats, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw one arm per row: (n,)."""
    return np.asarray((chances.cumsum(axis=1) < rng.random(len(chances))[:, None]).sum(axis=1), np.intp)


def evaluate(
    arms: NDArray[np.intp], rewards: Floats, behaviour: Floats, X: Floats, target: Floats, model: Any, seed: int
) -> ope.Evaluation:
    """Evaluate a target by all estimators of the published tables."""
    columns = {f"x{i}": X[:, i] for i in range(X.shape[1])}
    table = {"arm": arms, "reward": rewards, "p": behaviour[np.arange(len(arms)), arms], **columns}
    log = bt.read_log(table, arm="arm", reward="reward", propensity="p", context=list(columns))
    tree = bt.Tree(behaviour.shape[1])
    return bt.evaluate(log, target, tree=tree, behaviour=behaviour, estimators=list(NAMES), model=model, rng=seed)


SETTINGS: dict[str, Callable[..., Iterator[tuple[ope.Evaluation, float]]]] = {
    "digits": digits,
    "synthetic": synthetic,
    "open bandit": open_bandit,
}


def relative_errors(results: Iterator[tuple[ope.Evaluation, float]]) -> Errors:
    """Return the mean and standard deviation of |estimate - truth| / truth over runs, for every estimator."""
    errors: dict[str, list[float]] = {name: [] for name in NAMES}
    for result, truth in results:
        for name in NAMES:
            errors[name].append(abs(result[name].value - truth) / truth)
    return {name: (float(np.mean(values)), float(np.std(values))) for name, values in errors.items()}


HEAD = """
## Published tables, rebuilt

Open Bandit Pipeline prints the relative errors of its estimators, |estimate - truth| / truth, in the READMEs of its
examples. Here are the same settings, as far as its documentation tells them, with our estimators (`make
published-tables`; none of its code is used). A number is the mean over the runs ± their standard deviation; the lower
mean is bold. `ipw` is our `ips`, `snipw` our `snips`, `dr-os` our `dros`.
"""
TITLES = {
    "digits": "Digits: 30 runs, 1,258 rows, 10 actions; logistic regression logs, a random forest is evaluated",
    "synthetic": "Synthetic: 20 runs, 10,000 rows, 30 actions, 5 features; a policy that prefers bad actions logs",
    "open bandit": "Open Bandit: 30 resamples of 10,000 rows, 80 actions; from a random log to Thompson sampling",
}
NOTES = """
What cannot be known from the documentation, and what we took:

- Digits: the settings of the classifiers, and whether 0.4 is the classifier's or the uniform policy's share of the
  logging policy (its pages can be read both ways; with 0.6 of the classifier `dm` falls to 0.20 and `dr-os` to 0.018,
  and the others hardly change). The reward's model is LightGBM there and scikit-learn's gradient boosting here.
- Synthetic: the distribution of the coefficients (uniform on (-1, 1) here), and whether the learned policy is
  deterministic. It cannot be: with 10,000 rows and 30 actions, `ipw` of a deterministic policy has an error of about
  5%, not 1%. Rewards that differ less between actions make all errors smaller, so only the order of the estimators
  compares here.
- Open Bandit: which features the model has, and how the three positions of a recommendation are treated (here all rows
  together, and Thompson sampling with the shop's own Beta priors). The truth is 42 clicks in 10,000 rows and the log
  has 38: an error of 15% is what chance alone gives.
- The settings from which their tuned `switch-dr` and `dr-os` choose. Ours choose from the weights themselves, by SLOPE,
  and where the model is far off, as here, they trust it too much: `dr-os` on digits and `switch-dr` on the synthetic
  data lose to the published ones.

What both say: on digits and on the synthetic data `snipw`, `dr` and `sndr` are close to each other and ahead of `ipw`;
on Open Bandit, where clicks are few, those that lean on a model (`dm`, `switch-dr`, `dr-os`) lead.
"""


def section(results: dict[str, Errors], head: str = HEAD, notes: str = NOTES) -> str:
    """Write the section of the page."""
    lines = [START, head.strip(), ""]
    for name, ours in results.items():
        lines += [f"**{TITLES[name]}**", "", "| | " + " | ".join(f"`{them}`" for them in NAMES.values()) + " |"]
        lines.append("|---" * (len(NAMES) + 1) + "|")
        for label, errors, others in (("banditree", ours, PUBLISHED[name]), ("published", PUBLISHED[name], ours)):
            cells = []
            for estimator in NAMES:
                mean, sd = errors[estimator]
                text = f"{mean:.4f}"
                cells.append(f"{f'**{text}**' if mean < others[estimator][0] else text} ± {sd:.4f}")
            lines.append(f"| {label} | " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join([*lines, notes.strip(), END]) + "\n"


def kept_section(page: Path | None) -> str:
    """Return the section that a page has, so that remaking the rest of the page keeps it; "" if it has none."""
    text = page.read_text(encoding="utf-8") if page is not None and page.is_file() else ""
    start, end = text.find(START), text.find(END)
    return "" if start < 0 else "\n" + text[start : end + len(END)] + "\n"


def main(arguments: list[str] | None = None) -> None:
    """Replace the section in a page, or print it."""
    parser = argparse.ArgumentParser(description="Rebuild published tables of estimators.")
    parser.add_argument(
        "--out", type=Path, help="the page whose section is replaced; without it the section is printed"
    )
    parser.add_argument("--runs", type=int, help="runs of each setting, fewer than published for a quick look")
    options = parser.parse_args(arguments)
    limit = {} if options.runs is None else {"runs": options.runs}
    text = section({name: relative_errors(setting(**limit)) for name, setting in SETTINGS.items()})
    if options.out is None:
        print(text)
        return
    page = options.out.read_text(encoding="utf-8").removesuffix(kept_section(options.out)).rstrip("\n")
    options.out.write_text(f"{page}\n\n{text}", encoding="utf-8")


if __name__ == "__main__":
    main()
