"""What transparency costs: KL-divergence, query error and time of transparent releases beside plain ones.

Also draws docs/transparency.svg: one small table, its worlds and two releases. Into the page:
`python -m benchmarks transparency | PYTHONPATH=tests python -m red_team.page docs/transparency.md cost`
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import permutations, product
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

Groups = tuple[tuple[str, str], ...]
X = (0, 0, 2, 2, 6, 6, 7)
ILL = "cbdaHHH"


class Replayed(NamedTuple):
    """What an attacker finds who runs a publisher in every world, with all random bits."""

    worlds: int
    same: int  # worlds that can lead to the release of the true one
    belief: list[float]  # that each person has H, over those worlds
    published: float  # the largest share of H in a published group


def replayed(publish: Callable[[str], list[Groups]]) -> Replayed:
    """Run a publisher in every world; `publish` gives what it makes with each of the equally likely bits."""
    worlds = sorted({"".join(world) for world in permutations(ILL)})
    true = publish(ILL)[0]
    ways = {world: publish(world).count(true) for world in worlds}
    total = sum(ways.values())
    belief = [sum(n for world, n in ways.items() if world[p] == "H") / total for p in range(len(ILL))]
    share = max(values.count("H") / len(values) for _, values in true)
    return Replayed(len(worlds), sum(n > 0 for n in ways.values()), belief, share)


def lattice(world: str) -> list[Groups]:
    """What `generalize` publishes."""
    import jali

    rows = jali.generalize(_table(world), [jali.Safety(0.8, 0)]).frame("arrow").to_pylist()
    return [_groups([(row["x"], row["ill"]) for row in rows])]


def halves(world: str) -> list[Groups]:
    """What equal halves publish, for each of those who may be drawn, and each order of people with the same x."""
    import numpy as np

    import jali
    from jali.search.halves import halve, people_of
    from jali.search.items import columns_of

    table, made = _table(world), []
    columns, people = columns_of(table), people_of(table)
    ill = [p for p, value in enumerate(world) if value == "H"]
    for last in ill:  # of the other values there is one each, so that only this is left to chance
        drawn = np.array([*(p for p in range(len(X)) if p != last), last])
        for turned in product((False, True), repeat=3):
            pairs = [(1, 0) if turn else (0, 1) for turn in turned]
            ties = np.array([*(2 * at + p for at, pair in enumerate(pairs) for p in pair), 6])
            group = halve(columns, people, (jali.Safety(0.8, 0),), drawn=drawn, ties=ties, compiled=False).group
            boxes = {g: [x for x, own in zip(X, group, strict=True) if own == g] for g in set(group.tolist())}
            made.append(_groups([(str((min(boxes[g]), max(boxes[g]))), v) for g, v in zip(group, world, strict=True)]))
    return made


def _groups(rows: list[tuple[str, str]]) -> Groups:
    """What a group shows, and its values in no order."""
    return tuple(sorted((shown, "".join(sorted(v for s, v in rows if s == shown))) for shown in {s for s, _ in rows}))


def _table(world: str) -> Any:
    import pyarrow as pa

    import jali

    frame = pa.table({"x": X, "ill": list(world)})
    return jali.table(frame, quasi={"x": jali.bands(2, 4, low=0, high=7)}, sensitive=["ill"])


def draw(path: Path) -> None:
    """The table, then for each publisher the worlds that lead to its release and what they say of each person."""
    from jali.core.charts import Picture
    from jali.core.sketch import COLOURS

    found = {"plain: generalize": replayed(lattice), "transparent: equal halves": replayed(halves)}
    show(
        "Seven people, (0.8, 0)-safety",
        ["publisher", "worlds", "that lead to it", "largest belief", "largest published"],
        [[name, r.worlds, r.same, max(r.belief), r.published] for name, r in found.items()],
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
    Picture(title, f"Three of seven people have H. {said}.", paint, 7.6, 4.4).save(path)


def _people(axes: Any, name: str) -> None:
    """Everybody at x with their value."""
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
    axes.axhline(one.published, color=colours[4], linestyle="--", linewidth=1)
    share = Fraction(one.published).limit_denominator(9)
    axes.annotate(f"published: {share}", (0, share), xytext=(-14, 3), textcoords="offset points", fontsize=8)
    axes.set(ylim=(0, 1.05), yticks=[0, 0.5, 1], xlabel="person, by x")
    axes.set_title("belief in H of who knows the algorithm", fontsize=9)


if __name__ == "__main__":
    run()
