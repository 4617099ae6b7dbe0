"""What transparency costs: KL-divergence, query error and time of transparent releases beside plain ones.

Also draws docs/transparency.svg: one small table, its worlds and two releases. Into the page:
`python -m benchmarks transparency | PYTHONPATH=tests python -m red_team.page docs/transparency.md cost`
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.table import show, timed

ROWS = 1_000_000
SEEDS = 3  # transparent releases of each kind: each draws bits of its own
FIVE = ["age", "workclass", "education", "marital-status", "race"]
SEVEN = [*FIVE, "sex", "native-country"]
PICTURE = Path("docs/transparency.svg")


def run() -> None:
    """Print the tables and draw the picture."""
    cost()
    speed()
    draw(PICTURE)


def requests() -> Iterator[tuple[str, int, Any]]:
    """The three requests: what they are called, k, and the promise about values."""
    import jali

    yield "k 5, t 0.2", 5, jali.TCloseness(0.2)
    yield "k 6, entropy 6", 6, jali.EntropyDiversity(6)
    yield "k 10, frequency 4", 10, jali.FrequencyDiversity(4)


def methods(k: int, promise: Any) -> dict[str, Callable[..., Any]]:
    """The verbs that cut Adult, with what they are asked."""
    import jali

    return {
        "partition": lambda table, **more: jali.partition(table, [promise, jali.KAnonymity(k)], **more),
        "angelize": lambda table, **more: jali.angelize(table, promise, k=k, **more),
    }


def cost() -> None:
    """Adult, 45,222 rows: transparent over plain, shown alike."""
    import jali
    from jali.measures.queries import workload

    if not os.environ.get("JALI_ADULT"):
        print("skipped: JALI_ADULT does not name the Adult table\n")
        return
    rows = []
    for quasi in (FIVE, SEVEN):
        table = jali.datasets.adult(quasi=quasi, sensitive=["occupation"])
        asked = workload(table, 1000, volume=0.05, seed=0)
        for name, k, promise in requests():
            for method, publish in methods(k, promise).items():
                plain = publish(table)
                alike = plain.manifest.method["show"]
                others = [publish(table, show=alike, transparent=True) for _ in range(SEEDS)]
                kl = [release.manifest.metrics["kl"] for release in (plain, *others)]
                error = [asked.errors(release.estimate()).average for release in (plain, *others)]
                rows.append([len(quasi), name, method, *_over(kl), *_over(error)])
    head = ["columns", "request", "method"]
    for what in ("KL", "error"):
        head += [f"{what} plain", f"{what} transparent", "ratio", "from", "to"]
    show(f"Adult, 45,222 people, {SEEDS} transparent releases each; error is the mean of 1,000 counts", head, rows)


def _over(figures: list[float]) -> list[float]:
    """The plain figure, the median of the transparent ones, and their ratios: median, least, largest."""
    plain, *others = figures
    middle = statistics.median(others)
    return [plain, middle, middle / plain, min(others) / plain, max(others) / plain]


def speed() -> None:
    """The census with a million rows, by the clock and by the processors."""
    import jali

    small, table = (jali.datasets.occupations(rows) for rows in (3000, ROWS))
    rows = []
    for name, k, promise in requests():
        for method, publish in methods(k, promise).items():
            seconds = []
            for more in ({}, {"transparent": True}):
                publish(small, **more)  # compiled before the clock starts
                begun = time.process_time()
                clock, _ = timed(lambda more=more, publish=publish: publish(table, **more))  # type: ignore[misc]
                seconds += [clock, time.process_time() - begun]
            rows.append([name, method, *seconds, seconds[2] / seconds[0], seconds[3] / seconds[1]])
    head = ["request", "method", "plain", "of processors", "transparent", "of processors", "ratio", "of processors"]
    show(f"Seconds for {ROWS:,} people", head, rows)


# -- the picture ---------------------------------------------------------------------------------------------------

X = (0, 0, 2, 2, 6, 6, 7)
ILL = "cbdaHHH"


class Replayed(NamedTuple):
    """What an attacker finds who runs a publisher in every world."""

    worlds: int
    same: int  # worlds that lead to the release of the true one
    belief: list[float]  # that each person has H, over those worlds


def replayed(publish: Callable[[str], object]) -> Replayed:
    """Run a publisher in every world; what it publishes is compared."""
    worlds = sorted({"".join(world) for world in permutations(ILL)})
    true = publish(ILL)
    same = [world for world in worlds if publish(world) == true]
    return Replayed(len(worlds), len(same), [sum(w[p] == "H" for w in same) / len(same) for p in range(len(ILL))])


def lattice(world: str) -> object:
    """What `generalize` publishes: its rows, in no order."""
    import jali

    release = jali.generalize(_table(world), [jali.Safety(0.8, 0)])
    return sorted(map(tuple, release.frame("pandas").to_numpy().tolist()))


def halves(world: str) -> object:
    """The groups that equal halves publish: who is together, and their values."""
    import numpy as np

    import jali
    from jali.search.halves import People, halve
    from jali.search.items import columns_of, items_of

    table = _table(world)
    items = items_of(table, "relaxed")
    order = np.argsort(items.record)
    people = People(items.combination[order], items.value[order], items.whole)
    bits = np.random.default_rng(0).permutation(len(X))
    made = halve(columns_of(table), people, (jali.Safety(0.8, 0),), drawn=bits, ties=bits, compiled=False)
    group = made.group.tolist()
    return sorted((g, sorted(v for v, own in zip(world, group, strict=True) if own == g)) for g in set(group))


def _table(world: str) -> Any:
    import pyarrow as pa

    import jali

    frame = pa.table({"x": X, "ill": list(world)})
    return jali.table(frame, quasi={"x": jali.bands(2, 4, low=0, high=7)}, sensitive=["ill"])


def draw(path: Path) -> None:
    """The table, then for each publisher the worlds that lead to its release and what they say of each person."""
    from jali.core.charts import COLOURS, Picture

    found = {"plain: generalize": replayed(lattice), "transparent: equal halves": replayed(halves)}
    show(
        "Seven people, (0.8, 0)-safety: one group of seven is published",
        ["publisher", "worlds", "that lead to it", "largest belief", "published"],
        [[name, r.worlds, r.same, max(r.belief), 3 / 7] for name, r in found.items()],
    )

    def paint(canvas: Any) -> None:
        axes = canvas.subplots(len(found), 3, width_ratios=(1.0, 1.3, 1.5))
        for row, (name, one) in zip(axes, found.items(), strict=True):
            _people(row[0], name)
            _worlds(row[1], one, COLOURS)
            _beliefs(row[2], one, COLOURS)

    said = "; ".join(
        f"{n}: {r.same} of {r.worlds} worlds, largest belief {max(r.belief):.2f}" for n, r in found.items()
    )
    title = "One table, its worlds and two releases"
    Picture(title, f"Both publish one group of seven people with 3 H. {said}.", paint, 7.6, 4.4).save(path)


def _people(axes: Any, name: str) -> None:
    """Everybody at x with their value, in the one published group."""
    at = [X[:p].count(x) for p, x in enumerate(X)]
    for x, y, value in zip(X, at, ILL, strict=True):
        axes.text(x, y, value, ha="center", va="center", bbox={"boxstyle": "circle", "fc": "white", "ec": "#333333"})
    axes.set(xlim=(-1.2, 8.2), ylim=(-0.8, 2.2), xlabel="x", yticks=[], xticks=[0, 2, 4, 6])
    axes.set_title(name, loc="left", fontsize=9, fontweight="bold")
    axes.spines["left"].set_visible(False)


def _worlds(axes: Any, one: Replayed, colours: tuple[str, ...]) -> None:
    """A square for each world; those that lead to the release are dark."""
    import numpy as np
    from matplotlib.colors import ListedColormap

    wide = 40
    squares = (np.arange(one.worlds) < one.same).reshape(-1, wide)
    axes.pcolormesh(squares[::-1], cmap=ListedColormap(["#d9d9d9", colours[0]]), vmin=0, vmax=1, edgecolors="white",
                    linewidth=0.6, rasterized=True)  # fmt: skip
    axes.set_axis_off()
    axes.set_title(f"{one.same} of {one.worlds} worlds lead to it", fontsize=9)


def _beliefs(axes: Any, one: Replayed, colours: tuple[str, ...]) -> None:
    """The belief that each person has H, beside the published share."""
    names = [f"{x}{'′' if X[:p].count(x) else ''}" for p, x in enumerate(X)]
    axes.bar(names, one.belief, color=colours[0])
    axes.axhline(3 / 7, color=colours[4], linestyle="--", linewidth=1)
    axes.annotate("published: 3/7", (0, 3 / 7), xytext=(-14, 3), textcoords="offset points", fontsize=8)
    axes.set(ylim=(0, 1.05), yticks=[0, 0.5, 1], xlabel="person, by x")
    axes.set_title("belief in H of who knows the algorithm", fontsize=9)


if __name__ == "__main__":
    run()
