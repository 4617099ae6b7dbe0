"""The file that an interrupted frontier continues from. It is private: its figures were computed from the original."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from jali._version import __version__
from jali.encoding.table import Table
from jali.errors import InputError
from jali.principles.parameters import Number
from jali.reading import content
from jali.reports.frontier_points import Point
from jali.writing import put_content

FIGURES = 2
"""Raised whenever jali comes to other figures for the same release: points of an older number are made anew."""
ABOUT = "figures of jali.frontier, computed from the original: private, for the holder of the table alone"


@dataclass(frozen=True, eq=False)
class Cache:
    """Points that are known already, by what they depend on; written whole after each new one.

    A digest would confirm whoever guesses the table, and so would the figures: only the owner can read the file.
    """

    path: Path | None
    salt: str = ""
    table: str = ""
    points: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def open(cls, path: str | Path | None, table: Table) -> Cache:
        """The file, which must be of this table, or a new one; nothing is kept without a path."""
        if path is None:
            return cls(None)
        target = Path(path)
        if not target.exists():
            salt = secrets.token_hex(16)
            return cls(target, salt, _digest(table, salt))
        found = _parsed(target)
        if found["table"] != _digest(table, found["salt"]):
            do = "name another file, or delete this one"
            raise InputError(f"{target} is about another table, or one that is read differently", do=do)
        return cls(target, found["salt"], found["table"], dict(found["points"]))

    def key(self, facts: Mapping[str, Any]) -> str:
        """What a point depends on, in short."""
        text = json.dumps({**facts, "jali": __version__, "figures": FIGURES}, sort_keys=True, default=repr)
        return hashlib.blake2b(text.encode(), digest_size=16, key=self.salt.encode()).hexdigest()

    def get(self, key: str, strength: Number) -> Point | None:
        """The point, if it is known."""
        if key not in self.points:
            return None
        try:
            return Point.from_dict(self.points[key], strength)
        except (KeyError, TypeError):
            raise _foreign(self.path) from None

    def put(self, key: str, point: Point) -> None:
        """Remember a point, in the file too."""
        self.points[key] = point.to_dict()
        if self.path is not None:
            told = {"about": ABOUT, "salt": self.salt, "table": self.table, "points": self.points}
            put_content(self.path, json.dumps(told, indent=1), overwrite=True, private=True)


def _foreign(path: Path | None) -> InputError:
    return InputError(f"{path} is no file that a frontier can continue from", do="name another one, or a new one")


def _parsed(path: Path) -> Any:
    try:
        found = json.loads(content(path).decode("utf-8"))
        known = found["about"] == ABOUT and all(isinstance(found[key], str) for key in ("salt", "table"))
        if not known or not isinstance(found["points"], dict):
            raise ValueError
    except OSError as problem:
        raise InputError(f"{path} cannot be read", got=problem.strerror, do="name another file") from None
    except (ValueError, KeyError, TypeError):
        raise _foreign(path) from None
    return found


def _digest(table: Table, salt: str) -> str:
    """Everything that figures depend on in a table, in short."""
    found = hashlib.blake2b(digest_size=32, key=salt.encode())

    def add(*parts: object) -> None:
        for part in parts:
            data = np.ascontiguousarray(part).tobytes() if isinstance(part, np.ndarray) else repr(part).encode()
            found.update(len(data).to_bytes(8, "little") + data)

    add(table.domain, table.weight_name, table.person_name, table.records)
    add(table.person, table.weight, table.multiplicity)
    for column in table.columns:
        add(column.name, column.role, column.kind, column.judges_groups, column.declared)
        add(column.labels.to_pylist(), column.codes.astype(np.int64))
        for level, nodes in zip(
            column.hierarchy.levels if column.hierarchy else (),
            column.hierarchy.maps if column.hierarchy else (),
            strict=True,
        ):
            add(level.labels.to_pylist(), nodes.astype(np.int64))
    return found.hexdigest()
