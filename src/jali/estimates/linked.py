"""LinkedEstimate: people's boxes in one table, sensitive values in another, and a number that links the two."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import Bools, Floats, Ints, added, owners
from jali.core.rows import Order
from jali.cover.cover import DECLARE
from jali.errors import InputError
from jali.estimates import link_join
from jali.estimates.base import Count, condition_of, generator, names_of, place_of, short, table_of, undetermined
from jali.estimates.boxes import BoxEstimate
from jali.estimates.conditions import BoxColumn, Fits, Separate, assumed, by_column, fitting, split
from jali.estimates.link_join import ByValue, Joined, Pairs
from jali.query.tree import Condition, Constant, columns, simplify, tests_of

EVENLY = "each sensitive value of a bucket is equally likely to belong to each of its people"
_Answer: TypeAlias = tuple[float, float, float, tuple[str, ...]]
"""How many people: the estimate, how many surely, how many more may, and on what it rests."""


def _weighed(value: Floats, share: Floats) -> float:
    """Σ value · share; where a share is 0 a value that is not known (nan) does not matter."""
    total = float(value @ share)
    return total if np.isfinite(total) else float(value[share > 0] @ share[share > 0])


@dataclass(frozen=True, eq=False)
class LinkedEstimate:
    """Boxes over some columns, each in one link (a bucket or batch), and how often each link has each sensitive value.

    Within a link the values are independent of the boxes: mass(box, value) = mass(box) · count(link, value) /
    people(link). Everybody in a link has the same weight. Boxes are never multiplied with values to count.
    """

    shown: tuple[BoxColumn, ...]  # of the boxes
    link: Ints  # (boxes,)
    people: Ints | Floats  # (boxes,) whole numbers; or those that several tables together let expect
    hidden: tuple[BoxColumn, ...]  # the sensitive columns, of the entries; their cells are exact values
    value_link: Ints  # (entries,)
    count_of: Ints  # (entries,) people of the link who have the values, at least 1
    weight: Floats | None = None  # (links,) of each person; 1 by default
    order: Order | None = None  # of the published rows: the box of each
    called: str = "bucket"  # what a link is, for people
    cells: tuple[tuple[BoxColumn, ...], NDArray[np.integer]] | None = None  # what boxes show, and which each does

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        if not self.shown or not self.hidden or len(set(names)) < len(names):
            raise InputError("links: both tables need columns, each with a name of its own")
        if not len(self.link) == len(self.people) or not len(self.value_link) == len(self.count_of) > 0:
            raise InputError("links: each box and each entry needs a link and a number of people")
        expected = self.people.dtype.kind == "f"
        least = 0 if expected else 1
        if (self.people < least).any() or (self.count_of < 1).any() or min(self.link.min(), self.value_link.min()) < 0:
            raise InputError("links: every box and every entry stands for at least one person")
        sizes = np.bincount(self.link, self.people, minlength=len(self.size))
        same = np.allclose(sizes, self.size) if expected else np.array_equal(sizes, self.size)
        if not same or (self.size == 0).any():
            raise InputError("links: the two tables do not have the same people in each link")
        if any((np.diff(column.cover.start) != 1).any() for column in self.hidden):
            raise InputError("links: sensitive cells must be exact values")

    @classmethod
    def of_pairs(  # noqa: PLR0917 - the published tables as they are held
        cls, shown: Sequence[BoxColumn], cell: NDArray[np.integer], link: NDArray[np.integer], order: Order,
        hidden: Sequence[BoxColumn], value_link: Ints, count_of: Ints, *, weight: Floats | None = None,
        called: str = "bucket",
    ) -> LinkedEstimate:  # fmt: skip
        """The estimate of two published tables: distinct pairs of cells, which `shown` has, and links."""
        boxes = tuple(replace(column, codes=column.codes[cell]) for column in shown)
        links, people = (each.astype(np.int64, copy=False) for each in (link, order.numbers))
        made = cls(boxes, links, people, tuple(hidden), value_link, count_of, weight, order, called)
        return replace(made, cells=(tuple(shown), cell))

    def __repr__(self) -> str:
        names = ", ".join(column.name for column in self.columns)
        return (
            f"LinkedEstimate({len(self.link):,} boxes in {len(self.size):,} links of mass {short(self.total)}: {names})"
        )

    @property
    def columns(self) -> tuple[BoxColumn, ...]:
        """All columns: those of the boxes, then the sensitive ones."""
        return self.shown + self.hidden

    @property
    def total(self) -> float:
        """The mass of all people."""
        return self.boxes.total

    @cached_property
    def size(self) -> Ints:
        """People in each link: (links,)."""
        return added(self.value_link, self.count_of.astype(np.float64), 0).astype(np.int64)

    @cached_property
    def _scale(self) -> Floats:
        """The weight of a person of each link: (links,)."""
        return np.ones(len(self.size)) if self.weight is None else np.asarray(self.weight, dtype=np.float64)

    @cached_property
    def _people(self) -> Floats:
        return self.people.astype(np.float64)

    @cached_property
    def _separate(self) -> Separate:
        return Separate(self.shown, self.link, self._people)

    @cached_property
    def _separate_values(self) -> Separate:
        return Separate(self.hidden, self.value_link, self.count_of.astype(np.float64))

    @cached_property
    def _by_value(self) -> ByValue:
        keys = [(column.codes, column.cover.nodes) for column in self.hidden]
        return ByValue.of(keys, self.value_link, self.count_of, len(self.size))

    @cached_property
    def _value_codes(self) -> list[NDArray[np.integer]]:
        """The nodes of each joint value, by sensitive column: each (joint values,)."""
        return [column.codes[self._by_value.first] for column in self.hidden]

    @cached_property
    def boxes(self) -> BoxEstimate:
        """What can be asked without the sensitive columns."""
        return BoxEstimate(self.shown, self.people * self._scale[self.link])

    @cached_property
    def _alone(self) -> BoxEstimate:
        """The same with boxes that show the same made one, where it is known which do."""
        if self.cells is None:
            return self.boxes
        shown, cell = self.cells
        return BoxEstimate(shown, added(cell, self.boxes.mass, len(shown[0].codes)))

    @cached_property
    def values(self) -> BoxEstimate:
        """What can be asked of the sensitive columns alone."""
        return BoxEstimate(self.hidden, self.count_of * self._scale[self.value_link])

    @cached_property
    def _names(self) -> tuple[frozenset[str], frozenset[str]]:
        """Of the columns of the boxes, and of the sensitive ones."""
        return frozenset(column.name for column in self.shown), frozenset(column.name for column in self.hidden)

    def _side(self, names: Iterable[str]) -> BoxEstimate | None:
        """The one table that has all these columns, if one has."""
        asked, (shown, hidden) = {*names}, self._names
        for name in sorted(map(str, asked - shown - hidden)):
            place_of(name, [column.name for column in self.columns])
        return self._alone if asked <= shown else self.values if asked <= hidden else None

    # Counting.

    def count(self, condition: str | Condition | None = None, *, where: Mapping[str, object] | None = None) -> Count:
        """How many people satisfy the condition, with what is certain and possible of it.

        What is left of the condition for each sensitive value is asked of the boxes: Σ over links of
        people who fit · people who have the value / people. The bounds are exact: the fewest and the most over all ways
        to deal the values of each link to its people. Of n people q fit and s have the value, so at least q + s - n and
        at most min(q, s) are both; where different conditions are left for different values, `most_dealt` says it.
        """
        asked = condition_of(condition, where)
        self._side(columns(asked))
        asked = simplify(asked)
        separate = by_column(asked)
        alone = self._side(columns(asked) if separate is None else separate)
        if alone is not None:
            return alone.count(asked)
        value = low = doubt = 0.0
        assumes: dict[str, None] = {}
        for near, sure, more, based in self._answers(asked) if separate is None else self._columnwise(separate):
            value, low, doubt = value + near, low + sure, doubt + more
            assumes |= dict.fromkeys(based)
        if doubt == 0:
            return Count(low)
        if np.isnan(value):
            raise undetermined(self._unknown(asked), low, low + doubt, do=DECLARE)
        high = low + doubt
        evenly = EVENLY.replace("bucket", self.called)
        return Count(min(max(value, low), high), low=low, high=high, assumes=(evenly, *assumes))

    def expected(self, asked: Condition) -> float:
        """How many people are likely to satisfy the condition: the number that `count` has, without its bounds."""
        asked = simplify(asked)
        separate = by_column(asked)
        alone = self._side(columns(asked) if separate is None else separate)
        if alone is not None:
            return alone.expected(asked)
        if separate is not None:
            boxes = self._separate.ask(separate)
            share = self._having(separate) / self.size * self._scale
            return _weighed(boxes.value, share.take(boxes.link))
        left = self._left(asked)
        always = float(left.pop(Constant(True), np.zeros(len(self.size))) @ self._scale)
        return always + sum(self._both(rest, having)[0] for rest, having in left.items())

    def _columnwise(self, separate: Mapping[str, tuple[Condition, ...]]) -> Iterator[_Answer]:
        """The count for a conjunction of conditions on single columns of both tables."""
        having = self._having(separate)
        if having.any():
            yield self._of_columns(separate, having)

    def _having(self, separate: Mapping[str, tuple[Condition, ...]]) -> Floats:
        """How many people of each link have values that match the conditions on sensitive columns: (links,)."""
        mask = np.ones(len(self._by_value.first), dtype=np.bool_)
        for at, column in enumerate(self.hidden):
            if column.name in separate:
                mask &= self._separate_values.truth(at, separate[column.name]).maybe.take(self._value_codes[at])
        return self._by_value.having(mask)

    def _answers(self, asked: Condition) -> Iterator[_Answer]:
        """What any condition comes to: the people whose values satisfy it whatever they show, and all others."""
        left = self._left(asked)
        always = left.pop(Constant(True), None)
        if always is not None:
            sure = float(always @ self._scale)
            yield sure, sure, 0.0, ()
        if len(left) > 1:
            yield self._dealt(left)
            return
        for rest, having in left.items():
            separate = by_column(rest)
            yield self._both(rest, having) if separate is None else self._of_columns(separate, having)

    def _left(self, asked: Condition) -> dict[Condition, Floats]:
        """What is left of the condition for some sensitive values, if not nothing, and who has these: each (links,)."""
        left: dict[Condition, Bools] = {asked: np.ones(len(self._by_value.first), dtype=np.bool_)}
        for at, column in enumerate(self.hidden):
            after: dict[Condition, Bools] = {}
            for condition, some in left.items():
                own = tests_of(condition, column.name)
                if not own:
                    after[condition] = after[condition] | some if condition in after else some
                    continue
                patterns = self.values.judged(at, own)
                for rest, alike in split(condition, own, patterns).items():
                    if rest != Constant(False):
                        nodes = np.flatnonzero(np.logical_or.reduce(patterns.possible[alike], axis=0))
                        here = some & np.isin(column.codes[self._by_value.first], nodes)
                        after[rest] = after[rest] | here if rest in after else here
            left = after
        return {rest: self._by_value.having(some) for rest, some in left.items()}

    def _of_columns(self, separate: Mapping[str, tuple[Condition, ...]], having: Floats) -> _Answer:
        """How many people match the conditions on the shown columns, and a value that `having` counts by link."""
        asked = self._separate.ask(separate)
        return self._together(having, asked.link, (asked.value, asked.maybe, asked.sure), asked.rests_on)

    def _both(self, asked: Condition, having: Floats) -> _Answer:
        """The same for any condition that is left for the boxes."""
        (box, share, surely), based = self._fitting(asked)
        people = self._people.take(box)
        return self._together(having, self.link.take(box), (share * people, people, surely * people), based)

    def _dealt(self, left: Mapping[Condition, Floats]) -> _Answer:
        """The answer where different conditions are left for different values: who has which value matters."""
        shape = (len(left), len(self.link))
        maybe, sure = np.zeros(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_)
        near, rests = 0.0, dict[str, None]()
        for at, (rest, having) in enumerate(left.items()):
            (box, share, surely), based = self._fitting(rest)
            maybe[at, box], sure[at, box] = True, surely
            near += float((share * self._people.take(box)) @ (having / self.size * self._scale).take(self.link[box]))
            rests |= dict.fromkeys(based(np.flatnonzero(~surely & (having.take(self.link[box]) > 0))))
        classes = np.stack([*left.values()]).astype(np.int64)
        people = self.people.astype(np.int64)
        high = link_join.most_dealt(classes, self.link, people, maybe)
        low = classes.sum(axis=0) - link_join.most_dealt(classes, self.link, people, ~sure)
        return near, float(low @ self._scale), float((high - low) @ self._scale), tuple(rests)

    def _fitting(self, asked: Condition) -> tuple[Fits, Callable[[Ints], tuple[str, ...]]]:
        """The boxes that may satisfy a condition, and what the answer rests on if some of them are in doubt."""
        names = columns(asked)
        chosen = [i for i, column in enumerate(self.shown) if column.name in names]
        some = [self.shown[i] for i in chosen]
        own = [tests_of(asked, column.name) for column in some]
        judged = [self.boxes.judged(i, those) for i, those in zip(chosen, own, strict=True)]
        fits = fitting(asked, some, own, judged)

        def based(at: Ints) -> tuple[str, ...]:
            return assumed(some, judged, [column.codes.take(fits.box[at]) for column in some])

        return fits, based

    def _together(
        self, having: Floats, link: Ints, people: Sequence[Floats], based: Callable[[Ints], tuple[str, ...]]
    ) -> _Answer:
        """The answer from some people who may fit, and who has a value, (links,); `based` hears who is in doubt.

        Of the people: the link, and the expected, the largest and the least number of them; each (some,).
        """
        there = None if having.all() else np.flatnonzero(having.take(link))
        if there is not None:
            link, people = link.take(there), [each.take(there) for each in people]
        value, maybe, sure = people
        links = len(self.size)
        low = np.maximum(0.0, added(link, sure, links) + having - self.size)
        more = np.minimum(added(link, maybe, links), having) - low
        near = float(value @ (having / self.size * self._scale).take(link))
        doubted = np.flatnonzero(maybe > sure)
        rest = based(doubted if there is None else there[doubted]) if len(doubted) else ()
        return near, float(low @ self._scale), float(more @ self._scale), rest

    def _unknown(self, asked: Condition) -> list[str]:
        """The columns that the condition names and whose cells may be anything."""
        return [c.name for c in self.shown if c.name in columns(asked) and not c.cover.known[c.codes].all()]

    # Cells.

    @cached_property
    def _pairs(self) -> Pairs | None:
        """Boxes and entries of the same link, where links are small."""
        amount = self.people * (self._scale / self.size)[self.link]
        return Pairs.of((self.link, amount), (self.value_link, self.count_of.astype(np.float64)), len(self.size))

    def _joined(self, names: Sequence[str]) -> Joined:
        """The boxes and values as these columns, of both tables, show them, values spread over the boxes of a link."""
        first = [column for column in self.shown if column.name in names]
        second = [column for column in self.hidden if column.name in names]
        if self._pairs is not None:
            return self._pairs.joined(first, second)
        scale = self._scale / self.size
        whole = None if self.cells is None or len(first) < len(self.shown) else self.cells
        return link_join.joined(
            (first, self.link, self.people * scale[self.link]),
            (second, self.value_link, self.count_of.astype(np.float64)),
            len(self.size),
            known=whole,
        )

    def probability(self, cells: Any) -> Floats:
        """The probability of each cell, given by exact values of some columns (None is the missing value): (cells,)."""
        table = table_of(cells)
        alone = self._side(table.column_names)
        if alone is not None:
            return alone.probability(table)
        return link_join.mixed_probability(self._joined(table.column_names), table)

    def frame(self, columns: Sequence[str], kind: str | None = None) -> Any:
        """The joint table of some columns at exact values, with a `count`; sums to the total."""
        names = names_of(columns)
        both = self._side(names) or self._joined(names).boxes()
        return both.frame(names, kind)

    def sample(self, n: int | None = None, *, seed: int | np.random.Generator) -> pa.Table:
        """People drawn from the estimate: boxes by mass, then a sensitive value of the box's link.

        Without n the published rows in their order, with a value for each cell, and the sensitive values of each link
        dealt out to its people: each is given as often as it was published.
        """
        random = generator(seed)
        if n is None:
            boxes: NDArray[np.integer] = owners(self.people.astype(np.int64))
            boxes = boxes if self.order is None else self.order.of
            link = self.link[boxes]
            entry = link_join.shuffled_within(self.value_link, self.count_of, link, random.permutation(len(link)))
        else:
            boxes = self.boxes.draw_boxes(n, random)
            entry = link_join.draw_within(self.value_link, self.count_of, self.link[boxes], random)
        drawn = {c.name: c.cover.draw(c.codes[boxes], random, c.name) for c in self.shown}
        return pa.table(drawn | {c.name: c.cover.draw(c.codes[entry], random, c.name) for c in self.hidden})
