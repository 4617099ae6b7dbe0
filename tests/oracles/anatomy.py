"""Buckets of different values, one person at a time; and every table that could have given rise to some buckets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import permutations


def can_be_dealt(values: Sequence[int], l: int) -> bool:
    """Whether people can be put into buckets of at least l with different values, by trying every way."""

    def place(at: int, buckets: list[set[int]]) -> bool:
        if at == len(values):
            return all(len(bucket) >= l for bucket in buckets)
        for bucket in [*buckets, None]:
            if bucket is None:
                if place(at + 1, [*buckets, {values[at]}]):
                    return True
            elif values[at] not in bucket:
                bucket.add(values[at])
                if place(at + 1, buckets):
                    return True
                bucket.remove(values[at])
        return False

    return place(0, [])


def tables(values: Sequence[int]) -> list[tuple[int, ...]]:
    """All tables in which as many people have each value."""
    return sorted(set(permutations(values)))


def published(values: Sequence[int], buckets: Sequence[int]) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
    """What buckets say once their numbers are random: the people and the values of each, in no order."""
    found = []
    for number in set(buckets):
        people = tuple(i for i, bucket in enumerate(buckets) if bucket == number)
        found.append((people, tuple(sorted(values[i] for i in people))))
    return tuple(sorted(found))


def most_frequent(values: Sequence[int]) -> int:
    """How many people have the most frequent value."""
    return max(Counter(values).values())
