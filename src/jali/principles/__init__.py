"""Principles: promises that groups of people keep, judged from counts alone.

Importing this package makes every family known to `from_dict`; all it costs is numpy.
"""

from __future__ import annotations

from jali.principles.anonymity import AlphaAnonymity, DeltaPresence, KAnonymity
from jali.principles.base import Combined, Principle, from_dict, hold, principles_of
from jali.principles.closeness import TCloseness
from jali.principles.counts import Cells, Counts, Sensitive, dense
from jali.principles.diversity import DistinctDiversity, EntropyDiversity, FrequencyDiversity
from jali.principles.knowledge import MultiAttribute, Safety
from jali.principles.recursive import RecursiveDiversity

__all__ = [
    "AlphaAnonymity",
    "Cells",
    "Combined",
    "Counts",
    "DeltaPresence",
    "DistinctDiversity",
    "EntropyDiversity",
    "FrequencyDiversity",
    "KAnonymity",
    "MultiAttribute",
    "Principle",
    "RecursiveDiversity",
    "Safety",
    "Sensitive",
    "TCloseness",
    "dense",
    "from_dict",
    "hold",
    "principles_of",
]
