"""ANGEL: a million people with five marginals, counts and samples; how much batches win; the real Adult table."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from benchmarks.adult import arx_example
from benchmarks.table import show, timed

ROWS = 1_000_000
G = ["marital-status", "work-class", "education", "gender", "age"]
MARGINALS = [[*G[:n], "occupation"] for n in (1, 2, 3, 4)] + [["age", "gender", "occupation"]]
ADULT = ["age", "sex", "race", "marital-status", "education"]


def run() -> None:
    """Print the tables."""
    speed()
    many_batches()
    batches()
    adult()
    at_once()
    hardest()
    together()
    transparent()
    transparent_speed()


def _work(work: Callable[[], Any]) -> tuple[list[float], Any]:
    """Seconds by the clock and of the processors, and what the work gave."""
    begun = time.process_time()
    seconds, result = timed(work)
    return [seconds, time.process_time() - begun], result


def speed() -> None:
    """1,000,000 rows, t-closeness 0.2, k = 10, five marginals beside the table of all quasi-identifiers."""
    import jali
    from jali.measures.queries import workload

    promise = jali.TCloseness(0.2)
    small = jali.datasets.occupations(3000)
    jali.angelize(small, promise, k=10, marginals=MARGINALS)  # compiled before the clock starts
    table = jali.datasets.occupations(ROWS)
    made, release = _work(lambda: jali.angelize(table, promise, k=10, marginals=MARGINALS))
    estimate = release.estimate()
    asked = workload(table, 1000, volume=0.05, seed=0)
    counted, _ = _work(lambda: asked.errors(estimate))
    drawn, _ = _work(lambda: estimate.sample(ROWS, seed=0))
    audited, _ = _work(lambda: jali.audit(release))
    show(
        f"{ROWS:,} people, t = 0.2, k = 10, {len(MARGINALS)} marginals",
        ["what", "seconds", "of processors", "at most"],
        [
            ["angelize", *made, 10],
            ["1,000 counts", *counted, 1],
            [f"a sample of {ROWS:,}", *drawn, 2],
            ["audit", *audited, ""],
        ],
    )


def many_batches() -> None:
    """The audit of a release with some twenty people a batch, halved along the curve, and five marginals."""
    import numpy as np

    import jali
    from jali.publish.checks import prepared
    from jali.publish.drafts import of_groups
    from jali.search.batches import batches_along
    from jali.search.mondrian import mondrian

    table = prepared(jali.datasets.occupations(ROWS))
    promise, alike = jali.EntropyDiversity(7), (jali.KAnonymity(10),)
    batch = batches_along(table, promise, np.random.default_rng(0).permutation(table.records)).batch
    shows = {column.name: "interval" if column.name == "age" else "set" for column in table.quasi}
    buckets = {}
    for names in ([*shows, "occupation"], *MARGINALS):
        some = table.with_quasi(names)
        group = mondrian(some, alike).group
        assert group is not None  # strict
        buckets[tuple(names)] = group[some.frequencies.row_combination]
    release = of_groups(table, batch, buckets, (promise,), k=10, shows=shows)
    audited, _ = _work(lambda: jali.audit(release))
    show(
        f"{ROWS:,} people in {release.manifest.counts['batches']:,} batches, {len(MARGINALS)} marginals",
        ["what", "seconds", "of processors", "at most"],
        [["audit", *audited, 2]],
    )


def at_once() -> None:
    """What all tables of a release say together, beside the table of all columns alone, on Adult."""
    import jali
    from jali.measures.holder import divergence
    from jali.measures.queries import workload

    if not os.environ.get("JALI_ADULT"):
        return
    table = jali.datasets.adult(quasi=ADULT, sensitive=["occupation"])
    marginals = [["age", "occupation"], ["sex", "marital-status", "occupation"], ["education", "occupation"]]
    asked = workload(table, 200, volume=0.05, seed=0)
    rows = []
    for promise, k in ((jali.FrequencyDiversity(3), 10), (jali.FrequencyDiversity(5), 50)):
        for ways in ({"batches": "partition", "buckets": "partition"}, {}, {"batches": "anatomy"}):
            estimate = jali.angelize(table, promise, k=k, marginals=marginals, **ways).estimate()
            pair = (estimate.parts[0], estimate)
            kl = [divergence(each, table) for each in pair]
            rows.append([repr(promise), k, " ".join(ways.values()) or "best", *kl,
                         *(asked.errors(each).average for each in pair)])  # fmt: skip
    show(
        "KL-divergence in nats and mean error of 200 counts on Adult, three marginals",
        ["promise", "k", "batches, buckets", "KL, one table", "KL, all", "error, one table", "error, all"],
        rows,
    )


def batches() -> None:
    """What batches of a partition, of a curve and the better ones keep, beside plain generalization."""
    import jali

    table = jali.datasets.occupations(45_222)
    rows = []
    for promise in (jali.FrequencyDiversity(2), jali.FrequencyDiversity(5), jali.FrequencyDiversity(10),
                    jali.TCloseness(0.2), jali.TCloseness(0.5)):  # fmt: skip
        plain = jali.partition(table, [promise, jali.KAnonymity(10)])
        ways = [jali.angelize(table, promise, k=10, batches=way) for way in ("partition", "curve", "best")]
        kl = [release.manifest.metrics["kl"] for release in (plain, *ways)]
        rows.append([repr(promise), *kl, kl[-1] / kl[0]])
    show(
        "KL-divergence in nats, 45,222 people of the synthetic census, k = 10, by batches",
        ["promise", "generalization", "partition", "curve", "best", "best / generalization"],
        rows,
    )


def adult() -> None:
    """The whole Adult table: angelization against generalization with the same partitioner and display."""
    import jali

    if not os.environ.get("JALI_ADULT"):
        print("skipped: JALI_ADULT does not name the Adult table\n")
        return
    table = jali.datasets.adult(quasi=ADULT, sensitive=["occupation"])
    promises = [jali.FrequencyDiversity(5), jali.KAnonymity(10)]
    rows = []
    for name, plain, buckets in (("Mondrian", jali.partition, "partition"), ("local recoding", jali.recode, "recode")):
        first = plain(table, promises)
        shows = first.manifest.method["show"]
        second = jali.angelize(table, promises, buckets=buckets, show=shows)
        kl = [release.manifest.metrics["kl"] for release in (first, second)]
        rows.append([name, *kl, kl[1] / kl[0], second.manifest.method["batches"]])
    show(
        "KL-divergence on Adult, five quasi-identifiers, FrequencyDiversity(5), k = 10",
        ["partitioner", "generalization", "angelization", "ratio", "batches"],
        rows,
    )


def hardest() -> None:
    """The first 30,162 rows of Adult with the hierarchies of ARX's example, where local recoding loses most."""
    import jali

    table = arx_example()
    if table is None:
        return
    rows = []
    for promise, k, best, bars in (
        (jali.TCloseness(0.2), 5, 5.11, (2.6, 1.7)),
        (jali.EntropyDiversity(6), 6, 3.23, (2.4, 1.4)),
    ):
        for shows, bar in zip(("taxonomy", "set"), bars, strict=True):
            release = jali.angelize(table, promise, k=k, show=shows)
            rows.append([repr(promise), k, shows, release.manifest.metrics["kl"], bar, best])
    show(
        "KL-divergence in nats, 30,162 people of Adult, ARX's hierarchies",
        ["promise", "k", "shown as", "angelization", "below", "ARX's best"],
        rows,
    )


def together() -> None:
    """Fifteen requests on Adult with joint_k: what is delivered, what it costs, and what was coarsened."""
    import jali

    if not os.environ.get("JALI_ADULT"):
        return
    table = jali.datasets.adult(quasi=[*ADULT, "workclass"], sensitive=["occupation"])
    s = "occupation"
    requests = [
        [["age", s]], [["age", "sex", s]], [["education", s], ["age", "sex", s]], [["age"], ["education", "sex"]],
        [["age", "education", "sex", s], ["workclass"]],
    ]  # fmt: skip
    rows = []
    for k in (5, 10, 20):
        for marginals in requests:
            asked = {"k": k, "marginals": marginals}
            plain = jali.angelize(table, jali.EntropyDiversity(3), **asked)
            work, release = _work(
                lambda asked=asked: jali.angelize(table, jali.EntropyDiversity(3), joint_k=True, **asked)
            )
            kl = [each.manifest.metrics["kl"] for each in (plain, release)]
            buckets = [", ".join(f"{len(t.sizes):,}" for t in each.contents.tables) for each in (plain, release)]
            coarsened = "; ".join(release.manifest.method["coarsened"]) or "nothing"
            rows.append([k, " + ".join(",".join(each) for each in marginals), *work, *kl, *buckets, coarsened])
    show(
        "joint_k on Adult, six quasi-identifiers, EntropyDiversity(3)",
        ["k", "marginals", "seconds", "of processors", "KL asked", "KL", "buckets asked", "buckets", "coarsened"],
        rows,
    )


FIVE = ["age", "workclass", "education", "marital-status", "race"]
SEVEN = [*FIVE, "sex", "native-country"]


def transparent() -> None:
    """What transparent=True costs on Adult: KL-divergence and mean error of 500 counts, over those without it."""
    import jali
    from jali.measures.queries import workload

    if not os.environ.get("JALI_ADULT"):
        return
    rows = []
    for columns in (FIVE, SEVEN):
        table = jali.datasets.adult(quasi=columns, sensitive=["occupation"])
        asked = workload(table, 500, volume=0.05, seed=0)
        for promise, k in (
            (jali.TCloseness(0.2), 5), (jali.EntropyDiversity(6), 6), (jali.FrequencyDiversity(4), 10),
            ((jali.Safety(0.5, 2), jali.EntropyDiversity(6)), 6),
        ):  # fmt: skip
            plain = jali.angelize(table, promise, k=k)
            kl, error = plain.manifest.metrics["kl"], asked.errors(plain.estimate()).average
            made = [jali.angelize(table, promise, k=k, transparent=True) for _ in range(3)]
            kls = [release.manifest.metrics["kl"] / kl for release in made]
            errors = [asked.errors(release.estimate()).average / error for release in made]
            rows.append([len(columns), str(promise), k, made[0].manifest.method["batches"], kl,
                         min(kls), max(kls), min(errors), max(errors)])  # fmt: skip
    show(
        "transparent ANGEL over plain, 45,222 people of Adult, three runs",
        ["columns", "promise", "k", "batches", "plain KL", "KL least", "KL most", "error least", "error most"],
        rows,
    )


def transparent_speed() -> None:
    """1,000,000 rows, no marginals: transparent=True beside the default."""
    import jali

    small, table = jali.datasets.occupations(3000), jali.datasets.occupations(ROWS)
    rows = []
    for promise in (jali.TCloseness(0.2), jali.FrequencyDiversity(4), jali.Safety(0.5, 2)):
        for some in (small, table):  # compiled before the clock starts
            plain, _ = _work(lambda some=some, promise=promise: jali.angelize(some, promise, k=10))
            made, _ = _work(lambda some=some, promise=promise: jali.angelize(some, promise, k=10, transparent=True))
        rows.append([repr(promise), *plain, *made, made[1] / plain[1]])
    show(
        f"transparent ANGEL, {ROWS:,} people, k = 10",
        ["promise", "plain", "of processors", "transparent", "of processors", "ratio of processors"],
        rows,
    )


if __name__ == "__main__":
    run()
