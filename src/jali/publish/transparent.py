"""Which releases are transparent: they tell an attacker who knows how the groups were chosen nothing more.

A verb that is asked for `transparent=True` claims it here, and the manifest of the release says so. A method without a
proof is refused, and the message names one that has it. Decision 43 has the proofs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from jali.errors import InputError, told
from jali.principles import Safety
from jali.principles.base import Principle
from jali.releases.base import Release

PROVED = "use jali.partition, jali.angelize or jali.anatomize, which have a proof with transparent=True"
DEALT = "use jali.anatomize or jali.angelize, which deal people at random"

Method = Mapping[str, Any]  # as the manifest has it


class Answer(NamedTuple):
    """Whether there is a proof; otherwise why not, and what to do instead."""

    proved: bool
    why: str = ""
    do: str = PROVED


YES = Answer(True)


def claim(method: Method, principles: Sequence[Principle], *, one_row: bool) -> dict[str, bool]:
    """What the manifest's method says besides, where a verb was asked to be transparent; InputError without a proof.

    `method` is what the manifest says of the method, its options among them; `one_row`, whether nobody has several.
    """
    found = answer(method, principles)
    if not found.proved:
        raise InputError(f"{method['name']} is not transparent: {found.why}", do=found.do)
    return halved_claim(
        one_row=one_row or sizes_alone(principles)
    )  # which reads nobody's values, of any number of rows


def halved_claim(*, one_row: bool) -> dict[str, bool]:
    """The claim of equal halves (decision 41); `require_mixing` judges their promises."""
    if not one_row:  # the proofs are about one value a person
        do = "keep one row of each person, or leave transparent out"
        raise InputError("a transparent release needs one row per person", do=do)
    return {"transparent": True}


def is_asked(transparent: object) -> bool:
    """The option of a verb, which is true or false."""
    if not isinstance(transparent, bool):
        raise InputError("transparent is true or false", got=repr(told(transparent)))
    return transparent


def require_mixing(principles: Sequence[Principle]) -> None:
    """Raise InputError for a promise that equal halves do not keep.

    An attacker who does not know the random bits believes a mixture of groups' shares, and one person at a time.
    """
    for principle in principles:
        inner = principle.inner
        if isinstance(inner, Safety) and inner.k > 0:
            what = f"{principle!r} reckons with facts about several people, and equal halves do not keep it"
            raise InputError(what, do=DEALT)
        if not principle.closed_under_mixing():
            what = f"{principle!r} does not say that shares which keep it keep it when they are mixed"
            raise InputError(what, do="define closed_under_mixing, if that is so, or leave transparent out")


def sizes_alone(principles: Sequence[Principle]) -> bool:
    """Whether the promises are about the size of groups, and so say nothing about anybody's value."""
    return all(principle.judges_size_alone for principle in principles)


def withstands(release: Release) -> bool:
    """Whether a release is transparent: it says so itself, or it was made in a way for which there is a proof."""
    one_row = bool(release.manifest.counts.get("one_row_per_person_assumed", False))
    one_row = one_row or sizes_alone(release.principles)
    return release.transparent or (one_row and answer(release.manifest.method, release.principles).proved)


def answer(method: Method, principles: Sequence[Principle]) -> Answer:
    """Whether what a method publishes under these promises is proved to be transparent."""
    known = _ANSWERS.get(str(method["name"]))
    return Answer(False, "there is no proof for it") if known is None else known(method, principles)


# -- the methods, each as it is without transparent=True ----------------------------------------------------------


def _values(principles: Sequence[Principle]) -> Answer:
    """Why a search that turns groups down is not transparent under promises about values."""
    named = next(repr(p) for p in principles if not p.judges_size_alone)
    return Answer(False, f"which finer groups broke {named} can be told from those that are published")


def _generalize(method: Method, principles: Sequence[Principle]) -> Answer:
    if not sizes_alone(principles):
        return _values(principles)
    if method["metric"] == "kl" and not method["levels_given"]:
        return Answer(False, 'metric="kl" compares nodes by sensitive values', 'use metric="loss"')
    return YES


def _recode(method: Method, principles: Sequence[Principle]) -> Answer:
    if not sizes_alone(principles):
        return _values(principles)
    if method["objective"] == "kl":
        why = 'objective="kl" compares groups by sensitive values'
        return Answer(False, why, 'use objective="granularity"')
    return YES


def _partition(method: Method, principles: Sequence[Principle]) -> Answer:
    if Fraction(method["suppress"]):
        return Answer(False, "suppress compares releases by sensitive values", "leave suppress out")
    if method["split"] == "kl":
        return Answer(False, 'split="kl" compares cuts by sensitive values', "leave split out")
    if not sizes_alone(principles):
        return _values(principles)
    if method["mode"] != "strict":
        return Answer(False, "people who look alike are divided in the order of their values", 'use mode="strict"')
    return YES


def _anatomize(method: Method, principles: Sequence[Principle]) -> Answer:
    if method["buckets"] == "anatomy":
        return YES
    return Answer(False, "only buckets that are dealt at random have a proof", 'pass buckets="anatomy"')


def _marginals(method: Method, principles: Sequence[Principle]) -> Answer:
    return Answer(False, "the collection is chosen by what it tells about sensitive values")


def _repair(method: Method, principles: Sequence[Principle]) -> Answer:
    if not sizes_alone(principles):
        return _values(principles)
    if "by" in method:
        return Answer(False, "tuples are taken out by their values", 'use by="groups"')
    if not answer({**method, "name": method["repaired"]}, principles).proved:
        return Answer(False, "the release that is repaired is not")
    return YES


_ANSWERS: Mapping[str, Callable[[Method, Sequence[Principle]], Answer]] = {
    "generalize": _generalize, "partition": _partition, "recode": _recode, "anatomize": _anatomize,
    "marginals": _marginals, "repair": _repair,
}  # fmt: skip
"""By the name of the method in the manifest."""
