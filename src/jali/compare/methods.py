"""The methods that a frontier compares: how each makes a release, and in which sense it keeps a principle."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from jali.core.progress import Step
from jali.encoding.table import Table
from jali.errors import InputError, nearest
from jali.principles import AlphaAnonymity, DistinctDiversity, FrequencyDiversity, KAnonymity, Principle
from jali.publish.anatomize import anatomize
from jali.publish.angelize import angelize
from jali.publish.generalize import generalize
from jali.publish.marginals import marginals
from jali.publish.partition import partition, recode
from jali.releases.base import Release
from jali.releases.linked.buckets import counts_on_size
from jali.releases.marginals import promise_of

Options = Mapping[str, Any]
Met = Literal["yes", "otherwise", "no"]
"""Whether a principle is kept as it reads, in another sense than that, or not at all."""
ANGEL_K = 10
"""How many people an ANGEL release shows alike where the requirement does not say it."""


_READ_NO_VALUES: Mapping[str, Options] = {"generalize": {"metric": "loss"}, "recode": {"objective": "granularity"}}
"""What a method is asked for where it is to be transparent and the options do not say."""


class Sense(NamedTuple):
    """Whether, and in which sense, a method keeps a principle."""

    met: Met
    words: str


@dataclass(frozen=True)
class Method:
    """A way to publish a table under a requirement."""

    name: str
    section: str  # of a job, whose options it takes
    about: str  # what is published
    function: Callable[..., Release]
    sense: Callable[[Principle, Options], Sense]
    own: Callable[[tuple[Principle, ...], Options], Options] = lambda required, options: options  # as it is called

    def options(self, sections: Mapping[str, Options], *, transparent: bool) -> Options:
        """The options of its section; for its transparent form, with costs that read no sensitive values."""
        given = sections.get(self.section, {})
        return {**_READ_NO_VALUES.get(self.section, {}), **given, "transparent": True} if transparent else given

    def release(self, table: Table, required: tuple[Principle, ...], options: Options, step: Step) -> Release:
        """The release, which promises whatever of the requirement the method can keep."""
        if "transparent" in options and "transparent" not in KEYWORDS[self.section]:
            raise InputError(f"{self.name} has no transparent form", do="leave transparent out")
        kept = self.kept(required, options)
        if not kept:
            do = "ask for a diversity or closeness as well"
            raise InputError(f"{self.name} keeps nothing of this requirement", do=do)
        return self.make(table, kept, options, step)

    def kept(self, required: tuple[Principle, ...], options: Options) -> tuple[Principle, ...]:
        """Whatever of a requirement the method can keep."""
        return tuple(p for p in required if self.sense(p, options).met != "no")

    def make(self, table: Table, kept: tuple[Principle, ...], options: Options, step: Step) -> Release:
        """The release under principles that the method can keep."""
        return self.function(table, kept, on_step=step, **self.own(kept, options))


# -- in which sense ------------------------------------------------------------------------------------------------

_GROUPS = Sense("yes", "every published group keeps it")
_PDF = Sense(
    "otherwise",
    "every published group keeps it, but only against an attacker who already knows who is in the table: "
    "distributions can show it to anybody else",
)
_TOLD_APART = Sense("no", "quasi-identifiers are published person by person, so people can be told apart")
_BUCKETS = Sense("otherwise", "every bucket keeps it, but quasi-identifiers show who is in the table")
_ALIKE = Sense("yes", "every bucket keeps it, and the people of a bucket are shown alike")
_BATCHES = Sense("yes", "every batch keeps it, and so does every mixture of batches")


def _in_groups(principle: Principle, options: Options) -> Sense:
    return _PDF if "pdf" in _shows(options) else _GROUPS


def _shows(options: Options) -> Iterable[object]:
    show = options.get("show")
    return show.values() if isinstance(show, Mapping) else (show,)


def _in_buckets(principle: Principle, options: Options) -> Sense:
    if options.get("generalized") is True:
        return _PDF if "pdf" in _shows(options) else _ALIKE
    return _TOLD_APART if counts_on_size(principle) else _BUCKETS


def _in_marginals(principle: Principle, options: Options) -> Sense:
    weaker = "" if options.get("epsilon") is None else "; the check may be relaxed by epsilon"
    return Sense("otherwise", promise_of(principle, str(options.get("attacker", "quasi"))) + weaker)


def _in_batches(principle: Principle, options: Options) -> Sense:
    if isinstance(principle, (KAnonymity, AlphaAnonymity)):
        each = f"each published table by itself shows everybody among at least {principle.k} people"
        return Sense("otherwise", each if isinstance(principle, KAnonymity) else f"{each}, and batches keep the shares")
    return _BATCHES


# -- how -----------------------------------------------------------------------------------------------------------


def _pdf(required: tuple[Principle, ...], options: Options) -> Options:
    return {**options, "show": "pdf"}


def _anatomy(required: tuple[Principle, ...], options: Options) -> Options:
    """People are dealt into buckets where the promises say how many values each needs, else the table is cut."""
    dealt = all(isinstance(p, (FrequencyDiversity, DistinctDiversity)) for p in required)
    dealt &= len({getattr(p, "sensitive", None) for p in required}) == 1 and options.get("generalized") is not True
    dealt &= not options.keys() & {"mode", "split"}  # they say how a table is cut
    dealt |= options.get("transparent") is True  # a bucket that is cut is never transparent
    return {"buckets": "anatomy" if dealt else "partition", **options}


def _angel(required: tuple[Principle, ...], options: Options) -> Options:
    said = any(isinstance(p, (KAnonymity, AlphaAnonymity)) for p in required)
    return options if said else {"k": ANGEL_K, **options}


_EVERY = (
    Method("lattice", "generalize", "each column at one level of its hierarchy", generalize, _in_groups),
    Method("partition", "partition", "groups as boxes", partition, _in_groups),
    Method("recode", "recode", "groups recoded one by one", recode, _in_groups),
    Method("anatomy", "anatomize", "people and sensitive values in two tables", anatomize, _in_buckets, _anatomy),
    Method("angel", "angel", "batches of sensitive values, and k-anonymous people", angelize, _in_batches, _angel),
    Method("marginals", "marginals", "tables of counts over some columns", marginals, _in_marginals),
    Method("pdf", "partition", "boxes with the distribution in each", partition, lambda principle, options: _PDF, _pdf),
)  # fmt: skip

METHODS: Mapping[str, Method] = {method.name: method for method in _EVERY}
"""The methods by name, in the order in which they are shown."""

_FUNCTIONS: Mapping[str, Callable[..., Release]] = {method.section: method.function for method in _EVERY}
KEYWORDS: Mapping[str, tuple[str, ...]] = {
    section: tuple(name for name, parameter in inspect.signature(function).parameters.items()
                   if parameter.kind is parameter.KEYWORD_ONLY and name != "on_step")
    for section, function in _FUNCTIONS.items()
}  # fmt: skip
"""The options that may be given, by section."""


def sections_of(options: Mapping[str, Options] | None) -> Mapping[str, Options]:
    """Keyword arguments by section, each of which the function of that section knows."""
    form = 'write e.g. options={"partition": {"mode": "relaxed"}}'
    if options is not None and not isinstance(options, Mapping):
        raise InputError("options are keyword arguments by function", got=repr(options), do=form)
    for section, given in (options or {}).items():
        if section not in KEYWORDS:
            raise InputError(f'options: no method "{section}"', do=nearest(str(section), KEYWORDS))
        if not isinstance(given, Mapping):
            raise InputError(f'options: those of "{section}" are keyword arguments', got=repr(given), do=form)
        for name in given:
            if name not in KEYWORDS[section]:
                do = nearest(str(name), KEYWORDS[section])
                raise InputError(f'options: "{section}" has no option "{name}"', do=do)
    return dict(options or {})


def methods_of(names: Iterable[str] | None) -> tuple[Method, ...]:
    """The methods of these names, each once; all of them for None."""
    if names is None:
        return tuple(METHODS.values())
    if isinstance(names, str):
        raise InputError("methods is a list of names", got=repr(names), do=f'write methods=["{names}"]')
    wanted = list(dict.fromkeys(names))
    for name in wanted:
        if name not in METHODS:
            raise InputError(f'no method "{name}" to compare', do=nearest(str(name), METHODS))
    if not wanted:
        raise InputError("no method to compare", do=f"name some of {', '.join(METHODS)}")
    return tuple(METHODS[name] for name in wanted)
