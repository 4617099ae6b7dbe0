"""The maximum disclosure against the number of facts, and of very many buckets that come and go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import Floats, Ints
from jali.core.charts import Picture, lines
from jali.core.formats import to_native
from jali.errors import InputError, listed, told
from jali.principles.base import whole_number
from jali.principles.counts import Cells
from jali.principles.worst_case import (
    NEVER,
    Buckets,
    candidates,
    disclosed,
    folded,
    least_false,
    of_cells,
    of_matrix,
    targeted,
)
from jali.releases.base import Bound
from jali.risk.disclosure.buckets import What, counts_of, require_people, whole_numbers
from jali.risk.disclosure.knowledge import Facts, require_facts


def several(ks: Iterable[int]) -> tuple[int, ...]:
    """The numbers of facts that a curve is asked for, at least one."""
    asked = listed(ks)
    if not asked or any(isinstance(k, str) for k in asked):
        raise InputError("a curve needs a list of numbers k", got=repr(told(ks)), do="write e.g. range(14)")
    return asked


@dataclass(frozen=True, repr=False)
class Curve:
    """The maximum disclosure for each number of facts k, by implications and by negations alone.

    `kind` says whether it is "exact", or "at most" because an attacker cannot always tell who is in a group.
    """

    k: tuple[int, ...]
    implications: tuple[float, ...]  # (ks,)
    negations: tuple[float, ...]  # (ks,)
    kind: Bound = "exact"

    def to_dict(self) -> dict[str, Any]:
        """Plain lists by name, and the kind."""
        return self._columns() | {"kind": self.kind}

    def _columns(self) -> dict[str, Any]:
        return {"k": list(self.k), "implications": list(self.implications), "negations": list(self.negations)}

    def frame(self, kind: str = "arrow") -> Any:
        """A frame with a row for each k: "arrow", "pandas" or "polars"."""
        return to_native(pa.table(self._columns()), kind)

    def picture(self, *, about: str = "somebody's value") -> Picture:
        """Both curves as a picture."""
        return lines(
            self.k,
            {"any facts (implications)": self.implications, "values ruled out (negations)": self.negations},
            title=f"How sure of {about} an attacker with more facts can be",
            description="; ".join(
                f"{k} facts: {implied:.1%} by implications, {negated:.1%} by negations"
                for k, implied, negated in zip(self.k, self.implications, self.negations, strict=True)
            ),
            labels=("facts that the attacker knows", f"how sure of one value{', at most' * (self.kind == 'at most')}"),
            most=1,
            percent=True,
        )

    def plot(self, path: str | Path) -> Path:
        """Draw both curves into a file; its ending says in which form, .svg or .png."""
        return self.picture().save(path)

    def __repr__(self) -> str:
        lines = [" k  implications  negations"]
        rows = zip(self.k, self.implications, self.negations, strict=True)
        lines += [f"{k:>2}  {implied:12.4f}  {negated:9.4f}" for k, implied, negated in rows]
        if self.kind == "at most":
            lines.append("Upper bounds: groups overlap, so an attacker cannot always tell who is in which group.")
        return "\n".join(lines)


BLOCK = 512
"""Buckets whose least values are kept: a change looks at one block, an answer at few."""


class Tracker:
    """Buckets by number, and how much the worst attack on all of them discloses.

    `counts` is whatever `maximum` takes, or nothing; its buckets have the numbers 0, 1, …. Answers are for up to `most`
    facts. It keeps the largest counts of each bucket and its f(0 … most + 1), and for each block of buckets the least
    of them: those that matter (`worst_case.candidates`) are in the few blocks with the least. These are looked for
    again only once one of them is gone; a new bucket is compared with them alone.

    >>> tracker = Tracker([[2, 2, 1], [2, 1, 1, 1]])
    >>> number = tracker.add([3, 1])
    >>> tracker.maximum(0), tracker.remove(number), tracker.maximum(0)
    (0.75, None, 0.4)
    """

    def __init__(self, counts: What | None = None, *, most: int = 13, sensitive: str | None = None) -> None:
        self.most = whole_number("most", most, least=0)
        buckets = _buckets(counts, self.most + 1, sensitive)
        room = max(1, -(-len(buckets) // BLOCK)) * BLOCK
        self._size = np.ones(room, dtype=np.int64)
        self._top = _nobody(self.most + 1, room)
        self._free = np.full((self.most + 2, room), NEVER)
        self._number = np.full(room, -1, dtype=np.int64)  # of the bucket in each place, -1 where there is none
        self._place: dict[int, int] = {}  # of buckets that were added later
        self._first = self._next = len(buckets)  # the numbers of those that were there from the start are below
        self._empty = list(range(room - 1, len(buckets) - 1, -1))
        self._least_free = np.empty((self.most + 1, 0))
        self._least_target = np.empty((self.most + 1, 0))
        self._most_negated = np.empty((self.most + 1, 0))
        self._put(slice(0, len(buckets)), buckets, np.arange(len(buckets)))
        self._look(0, room // BLOCK)
        self._few: Ints | None = None  # places of the buckets that matter, None where one of them is gone
        self._answer: Floats | None = None  # the maximum disclosure of these for 0 … most implications
        if len(buckets):
            self._implied()

    def __len__(self) -> int:
        return int((self._number >= 0).sum())

    # -- buckets come and go ------------------------------------------------------------------------------------

    def add(self, row: Sequence[int] | NDArray[Any]) -> int:
        """One more bucket, by the counts of its values; its number."""
        try:
            counts = np.atleast_2d(np.asarray(row))
        except ValueError:
            raise InputError("each count must be a single number") from None
        buckets = of_matrix(require_people(whole_numbers(counts)), self.most + 1)
        if len(buckets) != 1:
            raise InputError("add takes the counts of one bucket", got=f"{len(buckets)} rows")
        if not self._empty:
            self._enlarge()
        place, number = self._empty.pop(), self._next
        self._place[number], self._next = place, number + 1
        self._put(slice(place, place + 1), buckets, np.array([number]))
        self._look(place // BLOCK, place // BLOCK + 1)
        if self._few is not None:
            self._choose(np.append(self._few, place))
        return number

    def remove(self, number: int) -> None:
        """The bucket of a number is gone; its number is not given again."""
        known = isinstance(number, (int, np.integer)) and not isinstance(number, bool)
        place = self._place.get(number, -1) if known and number >= self._first else number
        if not known or not 0 <= place < len(self._number) or self._number[place] != number:
            raise InputError(f"there is no bucket {told(number)}", do="give a number that add returned, and only once")
        self._place.pop(number, None)
        self._number[place] = -1
        self._free[:, place] = NEVER
        self._size[place], self._top[:, place] = 1, _nobody(self.most + 1, 1)[:, 0]
        self._empty.append(place)
        if self._few is not None and place in self._few:
            self._few = self._answer = None
        self._look(place // BLOCK, place // BLOCK + 1)

    def _put(self, where: slice, buckets: Buckets, numbers: Ints) -> None:
        self._size[where], self._top[:, where] = buckets.size, buckets.top
        self._free[:, where] = least_false(buckets, self.most + 1)
        self._number[where] = numbers

    def _enlarge(self) -> None:
        """Twice the room."""
        room = len(self._size)
        self._size = np.concatenate([self._size, np.ones(room, dtype=np.int64)])
        self._top = np.hstack([self._top, _nobody(self.most + 1, room)])
        self._free = np.hstack([self._free, np.full((self.most + 2, room), NEVER)])
        self._number = np.concatenate([self._number, np.full(room, -1, dtype=np.int64)])
        self._empty = list(range(2 * room - 1, room - 1, -1))
        self._look(0, 2 * room // BLOCK)

    def _look(self, begin: int, end: int) -> None:
        """Find the least values of the blocks from begin to end again."""
        if self._least_free.shape[1] != len(self._size) // BLOCK:
            shape = (self.most + 1, len(self._size) // BLOCK)
            self._least_free, self._least_target, self._most_negated = (np.empty(shape) for _ in range(3))
        inside, blocks = slice(begin * BLOCK, end * BLOCK), slice(begin, end)
        size, held, there = self._size[inside], self._top[0, inside], self._number[inside] >= 0
        scale, left = size / held, size.copy()
        for k in range(self.most + 1):
            left -= self._top[k, inside] if k else 0
            values = self._free[k, inside], self._free[k + 1, inside] * scale, np.where(there, held / left, 0.0)
            free, target, negated = (v.reshape(-1, BLOCK) for v in values)
            self._least_free[k, blocks], self._least_target[k, blocks] = free.min(axis=1), target.min(axis=1)
            self._most_negated[k, blocks] = negated.max(axis=1)

    # -- answers ------------------------------------------------------------------------------------------------

    def maximum(self, k: int, *, knowledge: Facts = "implications") -> float:
        """The maximum disclosure of the buckets that are there now; see `jali.disclosure.maximum`."""
        require_facts(knowledge)
        k = self._asked(k)
        if knowledge == "negations":
            return float(self._most_negated[k].max())
        return float(self._implied()[k])

    def curve(self, ks: Iterable[int] | None = None) -> Curve:
        """The maximum disclosure for several numbers of facts; 0 … most by default."""
        asked = tuple(self._asked(k) for k in several(range(self.most + 1) if ks is None else ks))
        implied = self._implied()
        return Curve(
            asked,
            tuple(float(implied[k]) for k in asked),
            tuple(float(self._most_negated[k].max()) for k in asked),
        )

    def _asked(self, k: int) -> int:
        k = whole_number("k", k, least=0)
        if k > self.most:
            raise InputError(f"this tracker answers up to k = {self.most}", got=str(k), do=f"Tracker(…, most={k})")
        if len(self._empty) == len(self._size):
            raise InputError("there is no bucket", do="add one first")
        return k

    def _implied(self) -> Floats:
        """The maximum disclosure for 0 … most implications: (most + 1,)."""
        if self._few is None:
            k = self.most
            chosen = [self._smallest(m, k - m + 2, aimed=False) for m in range(1, k + 1)]
            chosen += [self._smallest(j, k - j + 1, aimed=True) for j in range(k + 1)]
            found = np.unique(np.concatenate(chosen))
            self._choose(found[self._number[found] >= 0])
        if self._answer is None:
            assert self._few is not None, "they were found above"
            self._answer = disclosed(folded(*self._vectors(self._few))[1])
        return self._answer

    def _choose(self, places: Ints) -> None:
        """Keep those of the places that matter; the answer stands if they are the same as before."""
        few = places[candidates(*self._vectors(places))]
        if self._few is None or not np.array_equal(few, self._few):
            self._few, self._answer = few, None

    def _vectors(self, places: Ints) -> tuple[Floats, Floats]:
        """The vectors of buckets without and with the target: (most + 1, places) each."""
        free = self._free[:, places]
        return free[:-1], targeted(free, Buckets(self._size[places], self._top[:, places]))

    def _smallest(self, atoms: int, wanted: int, *, aimed: bool) -> Ints:
        """The places of buckets with the least vectors for this number of atoms, found in the blocks with the least."""
        blocks = _least((self._least_target if aimed else self._least_free)[atoms], wanted)
        inside = self._free[atoms + aimed].reshape(-1, BLOCK)[blocks]
        if aimed:
            inside = inside * (self._size.reshape(-1, BLOCK)[blocks] / self._top[0].reshape(-1, BLOCK)[blocks])
        which = _least(inside.ravel(), wanted)
        return np.asarray(blocks[which // BLOCK] * BLOCK + which % BLOCK, dtype=np.int64)


def _nobody(ranks: int, room: int) -> Ints:
    """The counts in places without a bucket, which no division minds: one value that one person has."""
    top = np.zeros((ranks, room), dtype=np.int64)
    top[0] = 1
    return top


def _least(values: Floats, wanted: int) -> Ints:
    """Where the least values are, as many as wanted."""
    if wanted >= len(values):
        return np.arange(len(values))
    return np.argpartition(values, wanted - 1)[:wanted].astype(np.int64)


def _buckets(counts: What | None, ranks: int, sensitive: str | None) -> Buckets:
    if counts is None:
        return Buckets(np.zeros(0, dtype=np.int64), np.zeros((ranks, 0), dtype=np.int64))
    found = counts_of(counts, sensitive)
    return of_cells(found, ranks) if isinstance(found, Cells) else of_matrix(require_people(found.matrix), ranks)
