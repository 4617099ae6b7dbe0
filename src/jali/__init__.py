"""jali: turns a table about people into something safe to publish and still worth analysing."""

from __future__ import annotations

from jali._version import __version__

TYPE_CHECKING = False  # as typing has it, which takes longer to load than all of this: Ctrl-C could come meanwhile
if TYPE_CHECKING:
    from typing import Any

    from jali import datasets
    from jali.encoding.builders import bands, dates, mask, suppress
    from jali.encoding.taxonomy import taxonomy, write_hierarchy
    from jali.errors import HierarchyError, InfeasibleError, InputError, InternalError, JaliError
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
    from jali.releases.anatomize import anatomize
    from jali.releases.angelize import angelize
    from jali.releases.base import load
    from jali.releases.collected import check_marginals, inject, marginals
    from jali.releases.concealed import conceal
    from jali.releases.generalized import generalize, minimal
    from jali.releases.partitioned import partition
    from jali.releases.recoded import recode
    from jali.releases.repair import repair
    from jali.reports.frontier import frontier
    from jali.reports.page import report
    from jali.reports.pictures import picture
    from jali.risk import disclosure, presence
    from jali.risk.attacks import attacks
    from jali.risk.audit import audit
    from jali.risk.beliefs import beliefs
    from jali.sources.files import read
    from jali.sources.frames import table
    from jali.utility.loss import measure

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
    "anatomize": "jali.releases.anatomize",
    "angelize": "jali.releases.angelize",
    "attacks": "jali.risk.attacks",
    "audit": "jali.risk.audit",
    "bands": "jali.encoding.builders",
    "beliefs": "jali.risk.beliefs",
    "check_marginals": "jali.releases.collected",
    "conceal": "jali.releases.concealed",
    "dates": "jali.encoding.builders",
    "frontier": "jali.reports.frontier",
    "generalize": "jali.releases.generalized",
    "inject": "jali.releases.collected",
    "load": "jali.releases.base",
    "marginals": "jali.releases.collected",
    "mask": "jali.encoding.builders",
    "measure": "jali.utility.loss",
    "minimal": "jali.releases.generalized",
    "partition": "jali.releases.partitioned",
    "picture": "jali.reports.pictures",
    "read": "jali.sources.files",
    "recode": "jali.releases.recoded",
    "repair": "jali.releases.repair",
    "report": "jali.reports.page",
    "suppress": "jali.encoding.builders",
    "table": "jali.sources.frames",
    "taxonomy": "jali.encoding.taxonomy",
    "write_hierarchy": "jali.encoding.taxonomy",
}

_MODULES = {"datasets": "jali.datasets", "disclosure": "jali.risk.disclosure", "presence": "jali.risk.presence"}

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
    "frontier",
    "generalize",
    "inject",
    "load",
    "marginals",
    "mask",
    "measure",
    "minimal",
    "partition",
    "picture",
    "presence",
    "read",
    "recode",
    "repair",
    "report",
    "suppress",
    "table",
    "taxonomy",
    "write_hierarchy",
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


def __dir__() -> list[str]:
    return __all__
