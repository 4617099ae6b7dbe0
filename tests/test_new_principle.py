"""A principle is one class: β-likeness, written here and nowhere else, goes through every method, file and command.

Cao and Karras 2012: for every sensitive value v with the share p_v in the table and q_v in a group,
(q_v - p_v) / p_v ≤ β. Every release is judged from what it published by `broken`, which is written from the definition
and shares nothing with the class.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import jali
from jali.cli.app import app
from jali.core.arrays import Bools, Floats
from jali.graphical.privacy.maxent import pruning, rule
from jali.job import Job
from jali.principles import Counts, dense, from_dict
from jali.principles.base import at_most, exact, known_principles
from jali.principles.column import ColumnPrinciple, Number, number
from jali.principles.rules import LARGEST, Rule, rules_of
from jali.search.mondrian import mondrian

COLUMNS = ("a", "b", "c", "ill")

Groups = Iterable[Mapping[str, float]]
"""The people of each group by sensitive value."""


@dataclass(frozen=True)
class BetaLikeness(ColumnPrinciple):
    """No value is more frequent in a group than 1 + β times its share in the table."""

    needs_reference: ClassVar[bool] = True
    shares_alone: ClassVar[bool] = True
    title: ClassVar[str] = "beta-likeness"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    beta: Number
    _: KW_ONLY
    sensitive: str | None = None

    def __post_init__(self) -> None:
        beta = number("beta", self.beta, "a number above 0", lambda beta: beta > 0, example="1")
        object.__setattr__(self, "beta", beta)

    def level(self, counts: Counts) -> Floats:
        cells = self.cells(counts)
        p, q = cells.reference / cells.reference.sum(), cells.n / cells.size[cells.group]
        gain = np.zeros(counts.groups)
        np.maximum.at(gain, cells.group, q / p[cells.value] - 1)
        return gain

    def judge(self, counts: Counts) -> Bools:
        cells = self.cells(counts)
        table, allowed = int(cells.reference.sum()), cells.reference[cells.value] * cells.size[cells.group]
        good = at_most(cells.n * table, 1 + exact("beta", self.beta), allowed)
        return np.bincount(cells.group[~good], minlength=counts.groups) == 0

    @property
    def bound(self) -> str:
        return str(self.beta)

    def promise(self) -> str:
        return f"in every group no {self.subject()} gains more than {self.beta} times its share in the table"


@dataclass(frozen=True)
class CompiledLikeness(BetaLikeness):
    """The same with a compiled form: one bound on the largest share for each value."""

    shares_alone: ClassVar[bool] = True
    monotone: ClassVar[bool] = True

    def rules(self, whole: Counts) -> Sequence[Rule]:
        column, people = whole.column(self.sensitive), whole.people
        share = 1 + exact("beta", self.beta)
        return [
            Rule(LARGEST, min(share * Fraction(int(n), people), Fraction(1)), named=(label,))
            for label, n in zip(column.labels, whole.reference(column.name), strict=True)
        ]


@dataclass(frozen=True)
class OnlyHalves(jali.FrequencyDiversity):
    """A subclass that judges more strictly than its parent: exactly two values, equally frequent."""

    def judge(self, counts: Counts) -> Bools:
        cells = self.cells(counts)
        return super().judge(counts) & (2 * cells.largest(cells.n) == counts.size)


def people(seed: int = 1, rows: int = 60) -> pa.Table:
    """People with four equally frequent illnesses, which depend loosely on two of three columns."""
    random = np.random.default_rng(seed)
    a, b, c = (random.integers(0, size, rows) for size in (3, 2, 4))
    ill = np.empty(rows, dtype=np.int64)
    ill[np.argsort(a + b + 3 * random.random(rows))] = np.arange(rows) * 4 // rows
    return pa.table({name: [f"{name}{v}" for v in codes] for name, codes in zip(COLUMNS, (a, b, c, ill), strict=True)})


def table_of(frame: pa.Table) -> jali.Table:
    """Each quasi-identifier shows its value or nothing."""
    return jali.table(frame, quasi={name: jali.suppress() for name in "abc"}, sensitive=["ill"])


def shares(frame: pa.Table) -> dict[str, Fraction]:
    counted = Counter(frame["ill"].to_pylist())
    return {value: Fraction(n, frame.num_rows) for value, n in counted.items()}


def broken(groups: Groups, frame: pa.Table, beta: Fraction, tolerance: float = 0.0) -> list[str]:
    """The values that some group has too often, by the definition; with a tolerance where people are only expected."""
    p, found = shares(frame), []
    for group in groups:
        size = sum(group.values())
        for value, n in group.items():
            q = Fraction(n) / Fraction(size)
            if (q - p[value]) / p[value] > beta + Fraction(tolerance):
                found.append(value)
    return found


def groups_of(rows: Iterable[Mapping[str, Any]], by: Sequence[str], count: str | None = None) -> Groups:
    found: dict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)
    for row in rows:
        found[tuple(row[name] for name in by)][row["ill"]] += 1 if count is None else row[count]
    return found.values()


def of_rows(release: Any) -> Groups:
    return groups_of(release.frame("arrow").to_pylist(), "abc")


def of_linked(name: str) -> Callable[[Any], Groups]:
    def read(release: Any) -> Groups:
        rows = release.tables[name].to_pylist()
        return groups_of(rows, [column for column in rows[0] if column not in {"ill", "count"}], "count")

    return read


def of_marginals(release: Any) -> Groups:
    """What maximum entropy expects in each cell of a, b and c: iterative fitting of all cells to the tables."""
    domain = {name: sorted({row[name] for row in FRAME.to_pylist()}) for name in COLUMNS}
    cells = [dict(zip(domain, values, strict=True)) for values in itertools.product(*domain.values())]
    expected = np.ones(len(cells))
    known = []
    for table in release.tables.values():
        rows = table.to_pylist()
        names = [name for name in table.column_names if name in domain and any(row[name] != "*" for row in rows)]
        count = next(name for name in table.column_names if name not in domain)
        sums: Counter[tuple[str, ...]] = Counter()
        for row in rows:
            sums[tuple(row[name] for name in names)] += row[count]
        known.append((sums, [tuple(cell[name] for name in names) for cell in cells]))
    for _ in range(500):
        for sums, keys in known:
            now: Counter[tuple[str, ...]] = Counter()
            for key, n in zip(keys, expected, strict=True):
                now[key] += n
            expected *= [sums[key] / now[key] if now[key] > 0 else 0.0 for key in keys]
    positive = [{**cell, "n": n} for cell, n in zip(cells, expected.tolist(), strict=True) if n > 1e-9]
    return groups_of(positive, "abc", "n")


FRAME = people()
METHODS: dict[str, tuple[Callable[..., Any], Callable[[Any], Groups]]] = {
    "generalize": (jali.generalize, of_rows),
    "partition": (jali.partition, of_rows),
    "recode": (jali.recode, of_rows),
    "anatomize": (jali.anatomize, of_linked("buckets")),
    "angelize": (lambda table, promise: jali.angelize(table, promise, k=2), of_linked("batches")),
    "marginals": (jali.marginals, of_marginals),
}


@pytest.mark.parametrize("kind", [BetaLikeness, CompiledLikeness])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_publishes_what_the_new_principle_allows(
    method: str, kind: type[BetaLikeness], tmp_path: Path
) -> None:
    publish, groups = METHODS[method]
    promise = kind(0.9)
    release = publish(table_of(FRAME), promise)
    tolerance = 1e-6 if method == "marginals" else 0.0
    assert not broken(groups(release), FRAME, Fraction("0.9"), tolerance)
    release.save(tmp_path / "release")
    again = jali.load(tmp_path / "release")
    assert promise in again.principles
    assert not broken(groups(again), FRAME, Fraction("0.9"), tolerance)
    assert all(jali.audit(again).kept.values())
    assert "gains more than 0.9 times" in again.promised(promise)


@pytest.mark.parametrize("method", ["generalize", "partition", "recode", "anatomize", "marginals"])
def test_the_oracle_sees_what_another_promise_leaves_open(method: str) -> None:
    """Without the principle some group breaks it: the checks above can fail."""
    publish, groups = METHODS[method]
    weak = jali.DistinctDiversity(1) if method == "anatomize" else jali.KAnonymity(2)
    assert broken(groups(publish(table_of(FRAME), weak)), FRAME, Fraction("0.9"), 1e-6)


def test_the_compiled_form_makes_the_groups_of_the_generic_one() -> None:
    for seed in range(6):
        table = table_of(people(seed, rows=80))
        whole = table.frequencies.counts(np.zeros(table.frequencies.combinations, dtype=np.int64), 1)
        for beta in ("0.3", "0.9", "3"):
            assert rules_of([BetaLikeness(beta)], whole) is None
            assert rules_of([CompiledLikeness(beta)], whole) is not None
            generic, compiled = (mondrian(table, (kind(beta),)) for kind in (BetaLikeness, CompiledLikeness))
            assert generic.group is not None
            assert compiled.group is not None
            assert generic.group.tolist() == compiled.group.tolist()
            recoded = [jali.recode(table, kind(beta)).frame("arrow") for kind in (BetaLikeness, CompiledLikeness)]
            assert sorted(map(repr, recoded[0].to_pylist())) == sorted(map(repr, recoded[1].to_pylist()))


JOB = """
input = "people.csv"
output = "out"
method = "{method}"

[quasi]
a = "suppress"
b = "suppress"
c = "suppress"

[sensitive]
ill = true

[[principles]]
name = "BetaLikeness"
beta = 0.9

[angel]
k = 2
"""


def job_in(folder: Path, method: str) -> Path:
    csv = [",".join(COLUMNS), *(",".join(row.values()) for row in FRAME.to_pylist())]
    (folder / "people.csv").write_text("\n".join(csv) + "\n")
    path = folder / "job.toml"
    path.write_text(JOB.format(method="angel" if method == "angelize" else method))
    return path


@pytest.mark.parametrize("method", METHODS)
def test_the_job_file_and_the_commands_take_it(method: str, tmp_path: Path) -> None:
    path = job_in(tmp_path, method)
    assert Job.load(path).principles == (BetaLikeness(0.9),)
    for command in (["publish", path], ["audit", tmp_path / "out"]):
        done = CliRunner().invoke(app, list(map(str, command)))
        assert done.exit_code == 0, done.output
        assert "BetaLikeness(0.9)" in done.output or "beta-likeness" in done.output or "gains more" in done.output
    assert not broken(METHODS[method][1](jali.load(tmp_path / "out")), FRAME, Fraction("0.9"), 1e-6)


def test_lists_of_principles_name_it() -> None:
    assert known_principles()["BetaLikeness"] is BetaLikeness
    assert from_dict({"name": "BetaLikeness", "beta": 2}) == BetaLikeness(2)
    with pytest.raises(jali.InputError, match="BetaLikeness"):
        from_dict({"name": "BetaLikenes", "beta": 2})
    with pytest.raises(jali.InputError, match=r"BetaLikeness, .*FrequencyDiversity"):
        jali.marginals(table_of(FRAME), jali.Safety(0.9, 1))
    assert "ColumnPrinciple" not in known_principles()


def test_anatomy_says_so_where_no_buckets_of_different_values_keep_it() -> None:
    with pytest.raises(jali.InfeasibleError, match="BetaLikeness"):
        jali.anatomize(table_of(FRAME.slice(0, 59)), BetaLikeness(0.01))
    with pytest.raises(jali.InfeasibleError, match="beta-likeness"):
        jali.generalize(table_of(FRAME), BetaLikeness(0.01), levels={})


# -- what a subclass inherits -------------------------------------------------------------------------------------


def test_a_subclass_that_judges_otherwise_has_no_rules_and_no_form_of_its_parent() -> None:
    whole = dense(np.array([[2, 2]]))
    column = whole.sensitive[0]
    for parent, own in ((jali.FrequencyDiversity(2), OnlyHalves(2)), (CompiledLikeness(1), LooseLikeness(1))):
        assert parent.rules(whole) is not None
        assert own.rules(whole) is None
        assert own.expected(column, np.ones(2)) is None
        assert not own.shares_alone
        assert rules_of([own], whole) is None
    with pytest.raises(jali.InputError, match="marginals cannot be judged by OnlyHalves"):
        jali.marginals(table_of(FRAME), OnlyHalves(2))
    assert Renamed(2).rules(whole) == jali.FrequencyDiversity(2).rules(whole)


@dataclass(frozen=True)
class LooseLikeness(CompiledLikeness):
    """A subclass that says nothing of how it judges."""


@dataclass(frozen=True)
class Renamed(jali.FrequencyDiversity):
    """A subclass that judges as its parent does, and says so."""

    title: ClassVar[str] = "renamed"
    rules = jali.FrequencyDiversity.rules


@pytest.mark.parametrize("publish", [jali.partition, jali.recode, jali.generalize])
def test_groups_keep_the_judgement_of_the_subclass(publish: Callable[..., Any]) -> None:
    halves = pa.table({"a": ["x", "y"] * 6, "b": ["u", "v", "w"] * 4, "c": ["z"] * 12, "ill": ["i0"] * 6 + ["i1"] * 6})
    for group in of_rows(publish(table_of(halves), OnlyHalves(1))):
        assert len(set(group.values())) == 1
        assert len(group) == 2


@dataclass(frozen=True)
class Counted(jali.FrequencyDiversity):
    """Frequency diversity without a form for distributions: judged as counts of very many people."""

    shares_alone: ClassVar[bool] = True


@dataclass(frozen=True)
class Fickle(Counted):
    """Merging may break it, as far as anybody knows."""

    shares_alone: ClassVar[bool] = True
    monotone: ClassVar[bool] = False


@pytest.mark.parametrize("l", ["2", "3", "1.5", "7/3"])
def test_distributions_are_judged_alike_by_form_and_by_counts(l: str) -> None:
    random = np.random.default_rng(3)
    rows = np.concatenate([random.integers(0, top, (300, 4)) for top in (2, 4, 9, 31)])  # many meet the bound exactly
    column, joint = dense(rows).sensitive, np.arange(4)[:, None]
    people_of = np.maximum(rows.sum(axis=0), 1)
    for scale in (1.0, 1 / 7, 1e-5):
        form, counted = (rule(kind(l), column, joint, people_of) for kind in (jali.FrequencyDiversity, Counted))
        for tie in (1e-12, 1e-7):
            one, other = form.judge(rows * scale, tie), counted.judge(rows * scale, tie)
            exactly = jali.FrequencyDiversity(l).holds(dense(rows))
            small = np.isin(rows.sum(axis=1), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14])
            assert np.array_equal(one.holds, exactly)
            assert np.array_equal(other.holds[small], exactly[small])
            apart = np.abs(one.levels - float(Fraction(l))) > 1e-5
            assert np.array_equal(other.holds[apart], exactly[apart])


def test_hulls_prune_only_for_principles_that_merging_never_breaks() -> None:
    joint, column = np.arange(3)[:, None], dense(np.ones((1, 3), dtype=np.int64)).sensitive
    steady, fickle = (pruning(rule(kind(2), column, joint, np.ones(3)), 3).__name__ for kind in (Counted, Fickle))
    assert (steady, fickle) == ("hull", "proportional")
