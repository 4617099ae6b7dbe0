"""jali: turns a table about people into something safe to publish and still worth analysing."""

from __future__ import annotations

from jali._version import __version__
from jali.core import open_door

TYPE_CHECKING = False  # as typing has it, which takes longer to load than all of this: Ctrl-C could come meanwhile
if TYPE_CHECKING:
    from typing import Any

    from jali import datasets
    from jali.compare.frontier import frontier
    from jali.encoding.builders import bands, dates, frequency, mask, quantiles, suppress
    from jali.encoding.codes import grid, prefix, zip
    from jali.encoding.hierarchy import taxonomy, write_hierarchy
    from jali.errors import HierarchyError, InfeasibleError, InputError, InternalError, JaliError
    from jali.measures.measure import measure
    from jali.principles import (
        AlphaAnonymity,
        DeltaPresence,
        DistinctDiversity,
        EntropyDiversity,
        FrequencyDiversity,
        KAnonymity,
        MultiAttribute,
        RecursiveDiversity,
        Safety,
        TCloseness,
    )
    from jali.publish.anatomize import anatomize
    from jali.publish.angelize import angelize
    from jali.publish.conceal import conceal
    from jali.publish.generalize import generalize, minimal
    from jali.publish.marginals import check_marginals, inject, marginals
    from jali.publish.partition import partition, recode
    from jali.publish.repair import repair
    from jali.releases import presence
    from jali.releases.load import load
    from jali.reports.page import report
    from jali.reports.pictures import picture
    from jali.risk.attacks.attacks import attacks
    from jali.risk.audit.audit import audit
    from jali.risk.beliefs import beliefs
    from jali.risk.disclosure import disclosure
    from jali.risk.profile import profile
    from jali.sources.tables import read, table

_WHERE = {
    "AlphaAnonymity": "jali.principles",
    "DeltaPresence": "jali.principles",
    "DistinctDiversity": "jali.principles",
    "EntropyDiversity": "jali.principles",
    "FrequencyDiversity": "jali.principles",
    "HierarchyError": "jali.errors",
    "InfeasibleError": "jali.errors",
    "InputError": "jali.errors",
    "InternalError": "jali.errors",
    "JaliError": "jali.errors",
    "KAnonymity": "jali.principles",
    "MultiAttribute": "jali.principles",
    "RecursiveDiversity": "jali.principles",
    "Safety": "jali.principles",
    "TCloseness": "jali.principles",
    "anatomize": "jali.publish.anatomize",
    "angelize": "jali.publish.angelize",
    "attacks": "jali.risk.attacks.attacks",
    "audit": "jali.risk.audit.audit",
    "bands": "jali.encoding.builders",
    "beliefs": "jali.risk.beliefs",
    "check_marginals": "jali.publish.marginals",
    "conceal": "jali.publish.conceal",
    "dates": "jali.encoding.builders",
    "frequency": "jali.encoding.builders",
    "frontier": "jali.compare.frontier",
    "generalize": "jali.publish.generalize",
    "grid": "jali.encoding.codes",
    "inject": "jali.publish.marginals",
    "load": "jali.releases.load",
    "marginals": "jali.publish.marginals",
    "mask": "jali.encoding.builders",
    "measure": "jali.measures.measure",
    "minimal": "jali.publish.generalize",
    "partition": "jali.publish.partition",
    "picture": "jali.reports.pictures",
    "prefix": "jali.encoding.codes",
    "profile": "jali.risk.profile",
    "quantiles": "jali.encoding.builders",
    "read": "jali.sources.tables",
    "recode": "jali.publish.partition",
    "repair": "jali.publish.repair",
    "report": "jali.reports.page",
    "suppress": "jali.encoding.builders",
    "table": "jali.sources.tables",
    "taxonomy": "jali.encoding.hierarchy",
    "write_hierarchy": "jali.encoding.hierarchy",
    "zip": "jali.encoding.codes",
}

_MODULES = {
    "datasets": "jali.datasets",
    "disclosure": "jali.risk.disclosure.disclosure",
    "presence": "jali.releases.presence",
}

_VERBS = {"extended": "jali.publish.angelize"}
"""Verbs behind methods of values that live below them (see `jali.core`)."""

__all__ = [
    "AlphaAnonymity",
    "DeltaPresence",
    "DistinctDiversity",
    "EntropyDiversity",
    "FrequencyDiversity",
    "HierarchyError",
    "InfeasibleError",
    "InputError",
    "InternalError",
    "JaliError",
    "KAnonymity",
    "MultiAttribute",
    "RecursiveDiversity",
    "Safety",
    "TCloseness",
    "__version__",
    "anatomize",
    "angelize",
    "attacks",
    "audit",
    "bands",
    "beliefs",
    "check_marginals",
    "conceal",
    "datasets",
    "dates",
    "disclosure",
    "frequency",
    "frontier",
    "generalize",
    "grid",
    "inject",
    "load",
    "marginals",
    "mask",
    "measure",
    "minimal",
    "partition",
    "picture",
    "prefix",
    "presence",
    "profile",
    "quantiles",
    "read",
    "recode",
    "repair",
    "report",
    "suppress",
    "table",
    "taxonomy",
    "write_hierarchy",
    "zip",
]


def __getattr__(name: str) -> Any:
    """Import what is heavy only when it is first used."""
    import importlib

    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name not in _WHERE:
        raise AttributeError(f"module 'jali' has no attribute '{name}'")
    value = getattr(importlib.import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def _verb(name: str) -> Any:
    """The verb of that name, from the room where it lives."""
    import importlib

    return getattr(importlib.import_module(_VERBS[name]), name)


open_door(_verb)


def __dir__() -> list[str]:
    return __all__
