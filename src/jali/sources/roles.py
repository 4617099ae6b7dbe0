"""Roles: what each column is for, as the caller said it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from jali.encoding import values as v
from jali.encoding.builders import builder_of
from jali.encoding.hierarchy import Builder
from jali.encoding.table import Domain, check_roles
from jali.errors import InputError, nearest, nearest_hidden

Missing = Literal["keep", "drop"]


@dataclass(frozen=True)
class Roles:
    """The caller's arguments in one checked form."""

    quasi: dict[str, Builder]
    sensitive: dict[str, Builder | None]
    other: tuple[str, ...] = ()
    person: str | None = None
    weights: str | None = None
    types: dict[str, v.Kind] = field(default_factory=dict)
    missing: Missing = "keep"
    domain: Domain = "declared"

    def __post_init__(self) -> None:
        for name, kind in self.types.items():
            if kind not in v.KINDS:
                raise InputError(f'types: no kind "{kind}" for column "{name}"', do=nearest(str(kind), v.KINDS))
        if self.missing not in ("keep", "drop"):
            raise InputError('missing must be "keep" or "drop"', got=repr(self.missing))
        if self.domain not in ("declared", "present"):
            raise InputError('domain must be "declared" or "present"', got=repr(self.domain))
        if not self.quasi:
            raise InputError("no quasi-identifier was named", do='name what an attacker may know: quasi=["age", "zip"]')

    def named(self) -> list[tuple[str, str]]:
        """Every named column with its role."""
        roles = [(n, "quasi") for n in self.quasi] + [(n, "sensitive") for n in self.sensitive]
        roles += [(n, "other") for n in self.other]
        roles += [(self.person, "person")] if self.person is not None else []
        roles += [(self.weights, "weights")] if self.weights is not None else []
        return roles

    def check(self, known: list[str]) -> None:
        """Raise InputError when a name is unknown, doubled, or in two roles."""
        seen: set[str] = set()
        for name in known:
            if name and name in seen:  # columns without a name, as spreadsheets leave behind, are only not published
                raise InputError(f'column name "{name}" occurs more than once', do="rename one of them")
            seen.add(name)
        check_roles(self.named(), known)
        for name in self.types:
            if name not in seen:
                raise InputError(f'types: no column "{name}" in the table', do=nearest_hidden(name, known))


def roles_of(  # noqa: PLR0917 - in the order of the arguments of read and table
    quasi: Mapping[str, object] | Iterable[str],
    sensitive: Mapping[str, object] | Iterable[str],
    other: Iterable[str],
    person: str | None,
    weights: str | None,
    types: Mapping[str, v.Kind] | None,
    missing: Missing,
    domain: Domain,
) -> Roles:
    """The caller's arguments, checked as far as can be without the table."""
    for role, given in (("person", person), ("weights", weights)):
        if given is not None and not isinstance(given, str):
            raise InputError(f"{role} must be the name of one column", got=type(given).__name__)
    if types is not None and not isinstance(types, Mapping):
        raise InputError("types must map columns to kinds", do='e.g. types={"zip": "text"}')
    return Roles(
        {name: builder_of(name, given) for name, given in _named("quasi", quasi).items()},
        {n: None if g is None else builder_of(n, g) for n, g in _named("sensitive", sensitive).items()},
        tuple(_named("other", other)),
        person,
        weights,
        dict(types or {}),
        missing,
        domain,
    )


def _named(role: str, given: Mapping[str, object] | Iterable[str]) -> dict[str, object]:
    if isinstance(given, str):
        raise InputError(f"{role} must be a list of column names", got=f'"{given}"', do=f'write {role}=["{given}"]')
    if isinstance(given, Mapping):
        pairs = list(given.items())
    elif isinstance(given, Iterable):
        pairs = [(name, None) for name in given]
    else:
        raise InputError(f"{role} must be a list of column names", got=type(given).__name__, do=f'e.g. {role}=["age"]')
    named: dict[str, object] = {}
    for name, hierarchy in pairs:
        if not isinstance(name, str):
            raise InputError(f"{role}: column names are texts", got=repr(name), do="rename the column")
        if name in named:
            raise InputError(f'{role} names column "{name}" twice', do="name it once")
        named[name] = hierarchy
    return named
