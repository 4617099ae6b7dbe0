"""Material: everything a report shows, computed once, by the same functions that users call themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeVar

from jali.core.text import Html, element
from jali.encoding.table import Table
from jali.errors import InputError
from jali.measures.measure import Measures, inferred_beside, measure
from jali.measures.queries import Association, Distribution, QueryErrors, association, distribution, workload
from jali.principles import KAnonymity
from jali.principles.base import Principle, show
from jali.principles.counts import Counts
from jali.releases.base import Release
from jali.risk.audit.audit import audit
from jali.risk.audit.figures import Audit
from jali.risk.policy import EXPOSING, Policy, policy_of
from jali.risk.verdict import Verdict, exposed_by_groups, verdict

if TYPE_CHECKING:
    from jali.risk.attacks.scene import Attack, Gallery

VOLUMES = (0.01, 0.02, 0.05, 0.1, 0.2)
QUERIES = (20, 100)
"""The least and the most questions of each volume; the more groups a release has, the fewer are asked."""
ASKED = 400_000
"""About how many groups all questions of one volume go through."""
SEED = 0
"""The questions are the same in every report, so that reports can be compared."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class Missing:
    """Something that is not defined for this release, and why."""

    reason: str


def attempt(compute: Callable[[], Result]) -> Result | Missing:
    """The result, or why there is none."""
    try:
        return compute()
    except InputError as problem:
        return Missing(problem.what)


@dataclass(frozen=True, eq=False)
class Material:
    """A release and, in the private edition, the original; figures are computed when they are first asked for."""

    release: Release
    original: Table | None = None
    public_table: Table | None = None  # what presence is judged beside
    policy: Policy | None = None  # None where none was named: then it is the strictest preset
    attacked: Gallery | bool = False  # attacks that were tried before, or whether the longest is tried too
    frontier: Mapping[str, Any] | None = None  # what other ways to publish cost, as `Frontier.to_dict` says
    decided: Mapping[str, str] = field(default_factory=dict)  # what the holder says for the sign-off

    def decided_by(self, decided: Mapping[str, str]) -> Material:
        """The same with what the holder says for the sign-off; figures that were computed are not computed again."""
        made = copy(self)
        object.__setattr__(made, "decided", dict(decided))
        return made

    def judged_by(self, policy: Policy | None, frontier: Mapping[str, Any] | None) -> Material:
        """The same under another policy and beside another comparison; figures are not computed again."""
        made = copy(self)
        object.__setattr__(made, "policy", policy)
        object.__setattr__(made, "frontier", frontier)
        made.__dict__.pop("verdict", None)
        return made

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The manifest as it is published."""
        return self.release.manifest.to_dict()

    @cached_property
    def columns(self) -> list[dict[str, Any]]:
        """What the manifest says of each column."""
        return self.release.columns_facts()

    def names(self, *roles: str) -> list[str]:
        """The columns of some roles, each once."""
        return list(dict.fromkeys(str(c["name"]) for c in self.columns if c.get("role") in roles))

    @cached_property
    def counts(self) -> Counts | Missing:
        """People by group and value."""
        return attempt(self.release.counts)

    @cached_property
    def audit(self) -> Audit | Missing:
        """What an attacker can learn."""
        return attempt(lambda: audit(self.release, public_table=self.public_table))

    @cached_property
    def before(self) -> Audit | Missing:
        """What an attacker could learn from the original, had it been published as it is."""
        original = self.original
        return Missing("no original") if original is None else attempt(lambda: audit(original))

    @cached_property
    def attacks(self) -> tuple[Attack, ...]:
        """The attacks that were tried, for each sensitive column; none without the original.

        None is tried either where the published groups tell already whom each of them exposes.
        """
        original = self.original
        if original is None:
            return ()
        if not isinstance(self.attacked, bool):
            return self.attacked.attacks
        if not self.attacked and self.public_table is None and None not in self.exposed.values():
            return ()
        from jali.risk.attacks.attacks import attacks  # which a public edition needs not

        found: list[Attack] = []
        columns: list[str | None] = [*self.names("sensitive")] or [None]
        for column in columns:
            made = attempt(
                lambda column=column: attacks(  # type: ignore[misc]
                    self.release, original, public=self.public_table, sensitive=column, cases=0
                )
            )
            if not isinstance(made, Missing):
                found += made.attacks if self.attacked else made.tried
        return tuple(found)

    @cached_property
    def exposed(self) -> dict[str, float | None]:
        """The share of people whom each attack exposes, as far as the published groups alone tell it."""
        known = None if isinstance(self.audit, Missing) else self.audit
        return {name: None if known is None else exposed_by_groups(name, known, self.release) for name in EXPOSING}

    @cached_property
    def verdict(self) -> Verdict:
        """Whether it may be published under the policy."""
        known = None if isinstance(self.audit, Missing) else self.audit
        return verdict(policy_of(self.policy), known, self.release, self.attacks)

    @cached_property
    def for_everybody(self) -> Verdict:
        """Whether it might be published to everybody, from what was found under its own policy."""
        known = None if isinstance(self.audit, Missing) else self.audit
        return verdict(policy_of("public"), known, self.release, self.attacks)

    @property
    def under(self) -> str:
        """The name of the policy, and whether somebody named it."""
        told = policy_of(self.policy).preset
        return told if self.policy is not None else f"{told}, the strictest preset, since none was named"

    @cached_property
    def estimate(self) -> Any:
        """What an analyst can infer."""
        return attempt(self.release.estimate)

    @cached_property
    def measures(self) -> Measures | Missing:
        """What was lost, against the original."""
        original = self.original
        return Missing("no original") if original is None else attempt(lambda: measure(self.release, original))

    @cached_property
    def distributions(self) -> dict[str, Distribution | Missing]:
        """Each quasi-identifier and sensitive column."""
        if isinstance(self.estimate, Missing):
            return dict.fromkeys(self.names("quasi", "sensitive"), self.estimate)
        return {
            name: attempt(lambda name=name: distribution(self.estimate, name, self.original))  # type: ignore[misc]
            for name in self.names("quasi", "sensitive")
        }

    @cached_property
    def associations(self) -> dict[tuple[str, str], Association | Missing]:
        """Each pair of columns."""
        every = self.distributions
        return {(a, b): self._association(every[a], every[b]) for a, b in combinations(every, 2)}

    def _association(self, one: Distribution | Missing, other: Distribution | Missing) -> Association | Missing:
        if isinstance(one, Missing):
            return one
        if isinstance(other, Missing):
            return other
        found = attempt(lambda: association(self.estimate, one.classes, other.classes, self.original))
        return Missing("too many combinations of values") if found is None else found

    @cached_property
    def errors(self) -> list[QueryErrors] | Missing:
        """How well random questions are answered, by volume, against the original."""
        original = self.original
        if original is None:
            return Missing("no original")
        groups = self.manifest["counts"].get("groups") or 1
        asked = min(max(ASKED // groups, QUERIES[0]), QUERIES[1])

        def answered() -> list[QueryErrors]:
            table, estimate = inferred_beside(self.release, original)
            return [workload(table, asked, volume=v, seed=SEED).errors(estimate) for v in VOLUMES]

        return attempt(answered)


BESIDE = "judged against the public table, which is no part of the release"


def reached(m: Material, principle: Principle) -> str | None:
    """What the release reaches of a promise; None where that is no single figure."""
    if m.release.hides_presence:
        found = attempt(m.release.presence)
        return None if isinstance(found, Missing) else f"{found.low:.4g} to {found.high:.4g}"
    if not m.release.one_grouping and isinstance(principle, KAnonymity):
        return None if isinstance(m.audit, Missing) else show(m.audit.k)
    counts = m.counts
    if isinstance(counts, Missing):
        return None
    worst = attempt(lambda: show(principle.worst(counts)))
    return None if isinstance(worst, Missing) else worst


def judged(m: Material, principle: Principle) -> str:
    """Whether a promise is kept, and how that was found."""
    kept = {} if isinstance(m.audit, Missing) else m.audit.kept
    how = BESIDE if m.release.hides_presence else "judged again from the published tables"
    if repr(principle) not in kept:
        return how if m.release.hides_presence else ""
    return f"kept, {how}" if kept[repr(principle)] else "BROKEN"


def not_defined(missing: Missing) -> Html:
    """What stands where something does not apply to this kind of release."""
    return element("p", f"Not defined for this release: {missing.reason}.", class_="none")
