"""What lattice, partition and recoding keep, side by side on the census table; draws docs/quality.svg."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.table import show

STRENGTHS = (2, 5, 10, 25, 50)


def run() -> None:
    """Print the table and draw the picture."""
    import jali

    table = jali.datasets.census(rows=45_222, seed=0)
    methods: dict[str, Any] = {
        "lattice": jali.generalize,
        "partition, range": jali.partition,
        "partition, kl": lambda t, p: jali.partition(t, p, split="kl"),
        "recoding": jali.recode,
    }
    found: dict[str, list[Any]] = {
        name: [jali.measure(method(table, [jali.KAnonymity(k)]), table) for k in STRENGTHS]
        for name, method in methods.items()
    }
    show(
        "KL-divergence in nats, 45,222 rows",
        ["k", *methods],
        [[k, *(m[i].kl for m in found.values())] for i, k in enumerate(STRENGTHS)],
    )
    show(
        "Discernibility",
        ["k", *methods],
        [[k, *(f"{m[i].discernibility:,.0f}" for m in found.values())] for i, k in enumerate(STRENGTHS)],
    )
    draw({name: [m.kl for m in measures] for name, measures in found.items()}, Path("docs/quality.svg"))


def draw(lines: dict[str, list[float]], path: Path) -> None:
    """One line a method, each with its own sign, so that colour is not needed."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 3.8), layout="constrained")
    for (name, values), sign in zip(lines.items(), "os^D", strict=True):
        axes.plot(STRENGTHS, values, marker=sign, label=name)
    axes.set(
        xscale="log", xlabel="k", ylabel="KL-divergence (nats)", title="What is lost, census, seven quasi-identifiers"
    )
    axes.set_xticks(STRENGTHS, [str(k) for k in STRENGTHS])
    axes.minorticks_off()
    axes.legend()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
