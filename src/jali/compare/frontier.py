"""The frontier: what each way of publishing costs at each strength of a requirement, and which one to take."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from jali.compare.methods import METHODS, Method, Options, methods_of, sections_of
from jali.compare.page import page, reasons, shown, table_of_text
from jali.compare.points import Cache, Knob, Part, Point, knob
from jali.core.files import hold_file, put_content
from jali.core.formats import to_native
from jali.core.progress import Step, watched
from jali.encoding.large import LargeTable
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError, one_of, path_of, told
from jali.measures.measure import inferred_beside
from jali.measures.queries import Workload, workload
from jali.principles.base import Principle, exact, plain, principles_of
from jali.principles.column import Number
from jali.publish.checks import require_publishable, require_table
from jali.publish.transparent import withstands
from jali.releases.base import Release
from jali.releases.generalized import Requirement
from jali.risk.audit.audit import audit
from jali.risk.verdict import reaches

QUERIES = 200
VOLUME = 0.05
COMPARABLE = 1.1
"""A release that withstands an attacker who knows the algorithm may lose this many times the least, in nats."""
Transparent = bool | Literal["prefer"]
NOBODY = "nobody in the table satisfies any of the questions, and no error can be relative to 0"
Sections = Mapping[str, Options]


class Call(NamedTuple):
    """How a job makes a release: its method, the options of that, and the principles of a requirement that it keeps."""

    method: str
    options: Options
    kept: tuple[Principle, ...]


@dataclass(frozen=True, repr=False, eq=False)
class Frontier:
    """Points by strength and method, computed from the original: for the holder of the table alone.

    `points` are ordered from the weakest strength to the strongest. `accept` names the methods whose own sense of the
    requirement is good enough; of all others only what is kept as it reads counts.
    """

    points: tuple[Point, ...]
    requirement: tuple[Principle, ...]
    vary: str
    asked: Number
    accept: frozenset[str]
    queries: int
    volume: float
    options: Sections
    transparent: Transparent = False

    def meets(self, point: Point) -> bool:
        """Whether a point meets all of the requirement, as it reads or in a sense that is accepted."""
        return point.verdict == "all" or (point.verdict == "otherwise" and point.method in self.accept)

    @property
    def at_asked(self) -> tuple[Point, ...]:
        """The points at the strength that the requirement asks for."""
        return tuple(point for point in self.points if point.strength == self.asked)

    @property
    def recommended(self) -> Point | None:
        """Of the points that meet all of the requirement as asked, that of lowest KL, then of lowest query error.

        Where transparent releases are preferred, the best of them if its KL is at most `COMPARABLE` times the lowest.
        """
        return self._best([point for point in self.at_asked if self.meets(point)])

    def _best(self, points: list[Point]) -> Point | None:
        least = min(points, key=lambda point: point.rank, default=None)
        if least is None or self.transparent is False:
            return least
        near = [p for p in points if p.transparent and p.rank[0] <= COMPARABLE * least.rank[0]]
        return min(near, key=lambda point: point.rank, default=least)

    @property
    def reason(self) -> str:
        """Why that one is recommended, or why none is, in a sentence or two."""
        return " ".join(reasons(self))

    def release(self, table: Table, *, method: str | None = None, on_step: Step | None = None) -> Release:
        """The recommended release, or another method's, made from the table at the strength that was asked for."""
        if method is None and self.recommended is None:
            raise InfeasibleError(self.reason)
        named = [point for point in self.at_asked if point.method == method and not point.reason]
        point = self.recommended if method is None else self._best(named)
        (chosen,) = methods_of([str(method if point is None else point.method)])
        options = chosen.options(self.options, transparent=self._asks_transparent(point))
        with watched("publishing", on_step) as step:
            return chosen.release(table, self.requirement, options, step)

    def _asks_transparent(self, point: Point | None) -> bool:
        return self.transparent is True or (self.transparent == "prefer" and point is not None and point.transparent)

    def call(self, point: Point, required: tuple[Principle, ...]) -> Call:
        """How a job makes a point, whose requirement at its strength is given."""
        (method,) = methods_of([point.method])
        options = method.options(self.options, transparent=self._asks_transparent(point))
        kept = method.kept(required, options)
        return Call(method.section, method.own(kept, options), kept)

    def frame(self, kind: str = "arrow") -> Any:
        """The points as a table: "arrow", "pandas" or "polars"."""
        chosen = self.recommended
        columns: dict[str, tuple[pa.DataType, Callable[[Point], Any]]] = {
            "method": (pa.string(), lambda p: p.method),
            "strength": (pa.float64(), lambda p: float(exact("strength", p.strength))),
            "kl": (pa.float64(), lambda p: p.kl),
            "query_error": (pa.float64(), lambda p: p.error),
            "meets": (pa.string(), lambda p: p.meets),
            "meets_all": (pa.bool_(), self.meets),
            "sense": (pa.string(), lambda p: p.sense),
            "transparent": (pa.bool_(), lambda p: p.transparent),
            "seconds": (pa.float64(), lambda p: p.seconds),
            "reason": (pa.string(), lambda p: p.reason),
            "undefined": (pa.string(), lambda p: p.undefined),
            "recommended": (pa.bool_(), lambda p: p is chosen),
        }
        made = {name: pa.array([of(p) for p in self.points], kind_) for name, (kind_, of) in columns.items()}
        return to_native(pa.table(made), kind)

    def to_dict(self) -> dict[str, Any]:
        """Plain nested values."""
        chosen = self.recommended
        return {
            "requirement": [principle.to_dict() for principle in self.requirement],
            "vary": self.vary,
            "asked": plain(self.asked),
            "accept": sorted(self.accept),
            "queries": self.queries,
            "volume": self.volume,
            "transparent": self.transparent,
            "points": [point.to_dict() | {"meets_all": self.meets(point)} for point in self.points],
            "recommended": None if chosen is None else chosen.method,
            "recommended_transparent": chosen is not None and chosen.transparent,
            "reason": self.reason,
        }

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write one page that opens without a network: pictures, tables and sentences; confidential."""

        target = path_of(path)
        with hold_file(target, overwrite=overwrite):  # before the page is made
            put_content(target, page(self), overwrite=overwrite)
        return target

    def _repr_html_(self) -> str:

        return shown(self)

    def __repr__(self) -> str:
        return table_of_text(self)


def frontier(
    table: Table,
    requirement: Requirement,
    *,
    methods: Iterable[str] | None = None,
    vary: str | None = None,
    strengths: Iterable[Any] | None = None,
    accept: Iterable[str] = (),
    transparent: Transparent = False,
    queries: int = QUERIES,
    volume: float = VOLUME,
    seed: int = 0,
    options: Sections | None = None,
    resume: str | Path | Cache | None = None,
    on_step: Step | None = None,
    on_point: Callable[[Frontier], None] | None = None,
) -> Frontier:
    """What each way of publishing the table costs, at a range of strengths of the requirement.

    `methods` are some of "lattice", "partition", "recode", "anatomy", "marginals", "pdf" (and "angel"). `vary` is the
    parameter that changes, e.g. "k" or "EntropyDiversity.l"; `strengths` its values beside the one that is asked for.
    `accept` names methods whose own sense of the requirement is good enough to be recommended. Each point says whether
    it withstands an attacker who knows the algorithm; `transparent=True` compares only releases that do, "prefer"
    compares them with the others and recommends one where it loses at most 10 % more than the best. The query error is
    that of `queries` random questions of this `volume`. `options` are keyword arguments by public function, e.g.
    {"generalize": {"suppress": 0.01}}. `resume` is a private file from which an interrupted run continues.
    `on_point` is called after each point with the frontier as far as it is known. Of a table beyond memory, a method
    that needs all of it has no release, and the point says why.
    """
    require_table("frontier", table, large=True)
    chosen, turned = methods_of(methods), knob(principles_of(requirement), vary)
    sections = sections_of(options)
    accepted = _accepted(accept, turned.requirement, sections)
    require_publishable(table)
    _check(table, turned.requirement)
    if not isinstance(transparent, bool) and not one_of(transparent, ("prefer",)):
        raise InputError('transparent is true, false or "prefer"', got=repr(told(transparent)))
    asked = workload(table, queries, volume=volume, seed=seed)
    every = [(method, value) for value in turned.values(strengths) for method in chosen]

    def of(points: Iterable[Point]) -> Frontier:
        return Frontier(
            tuple(points), turned.requirement, turned.names[1], turned.asked, accepted, len(asked.conditions),
            asked.volume, sections, transparent,
        )  # fmt: skip

    with nullcontext() if not isinstance(resume, (str, Path)) else hold_file(resume, overwrite=True):
        cache = resume if isinstance(resume, Cache) else Cache.open(resume, table)
        made = _Run(table, turned, asked, seed, sections, cache, transparent)
        return of(_points(made, every, on_step, lambda points: on_point(of(points)) if on_point else None))


def _points(
    made: _Run, every: list[tuple[Method, Number]], on_step: Step | None, on_point: Callable[[list[Point]], None]
) -> list[Point]:
    points: list[Point] = []
    with watched("comparing methods", on_step) as step:
        for done, (method, value) in enumerate(every):
            step(done, len(every))
            # what a method reports of its own progress only keeps the whole run interruptible
            points += made.points(method, value, lambda _d, _t, done=done: step(done, len(every)))  # type: ignore[misc]
            on_point(points)
        step(len(every), len(every))
    return points


def _accepted(names: Iterable[str], requirement: tuple[Principle, ...], options: Sections) -> frozenset[str]:
    """The methods that are accepted; what one of them does not keep at all nobody can accept."""
    wanted = [names] if isinstance(names, str) else list(names)
    found = methods_of(wanted) if wanted else ()
    for method in found:
        for principle in requirement:
            sense = method.sense(principle, options.get(method.section, {}))
            if sense.met == "no":
                what = f"accept: {method.name} does not keep {principle!r} in any sense, for {sense.words}"
                raise InputError(what, do=f"leave {method.name} out of accept, or change the requirement")
    return frozenset(method.name for method in found)


def _check(table: Table, requirement: tuple[Principle, ...]) -> None:
    """Raise InputError for a principle that makes no sense for the table, whatever the method."""
    known = table.at_roots() if isinstance(table, LargeTable) else table
    whole = known.frequencies.whole
    for principle in requirement:
        principle.check(whole)


def sections_known() -> tuple[str, ...]:
    """The names under which options may be given."""
    return tuple(dict.fromkeys(method.section for method in METHODS.values()))


@dataclass(frozen=True)
class _Run:
    """What all points of a frontier share."""

    table: Table
    turned: Knob
    asked: Workload
    seed: int
    options: Sections
    cache: Cache
    transparent: Transparent

    def points(self, method: Method, value: Number, step: Step) -> list[Point]:
        """The point of a method; where transparent releases are preferred, also that of its transparent form."""
        plain = self.point(method, value, step, transparent=self.transparent is True)
        if self.transparent != "prefer" or plain.transparent:
            return [plain]
        other = self.point(method, value, step, transparent=True)
        return [plain] if other.reason else [plain, other]

    def point(self, method: Method, value: Number, step: Step, *, transparent: bool) -> Point:
        """The point, from the file where it is known."""
        required, options = self.turned.at(value), method.options(self.options, transparent=transparent)
        facts: dict[str, Any] = {
            "method": method.name, "requirement": [p.to_dict() for p in required], "options": dict(options),
            "workload": [len(self.asked.conditions), self.asked.volume, self.seed],
        }  # fmt: skip
        if isinstance(self.table, LargeTable):
            facts["memory"] = self.table.memory  # with more of it a method may have a release
        key = self.cache.key(facts)
        known = self.cache.get(key, value)
        if known is not None:
            return known
        found = self._made(method, value, required, options, step)
        self.cache.put(key, found)
        return found

    def _made(
        self, method: Method, value: Number, required: tuple[Principle, ...], options: Options, step: Step
    ) -> Point:
        started = time.monotonic()
        try:
            release = method.release(self.table, required, options, step)
        except (InputError, InfeasibleError) as problem:  # what is said of one method is no reason to hide the others
            return Point(method.name, value, seconds=time.monotonic() - started, reason=str(problem))
        parts = tuple(Part(repr(p), *method.sense(p, options)) for p in required)
        error, undefined = self._error(release)
        return Point(
            method.name, value, float(release.manifest.metrics["kl"]), error, parts, time.monotonic() - started,
            undefined=undefined, transparent=withstands(release), reaches=_reached(release),
        )  # fmt: skip

    def _error(self, release: Release) -> tuple[float | None, str | None]:
        """The query error as `measure` has it, or why it is not defined, which is no reason to hide a release."""
        try:
            error = self.asked.errors(inferred_beside(release, self.table)[1]).average
        except InputError as problem:
            return None, problem.what
        return (None, NOBODY) if math.isnan(error) else (error, None)


def _reached(release: Release) -> dict[str, float]:
    """What a release reaches of the thresholds of a policy; nothing where what an attacker learns is not defined."""
    try:
        return reaches(audit(release), release)
    except InputError:
        return {}
