"""What a release says of a quasi-identifier: the facts of a column that is shown at one level of its hierarchy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import Ints
from jali.cover.cover import Cover
from jali.encoding import values as v
from jali.encoding.builders import Automatic, of_recipe
from jali.encoding.hierarchy import COUNTED, ROOT, Builder, Family, Hierarchy, Recipe, Taxonomy
from jali.errors import HierarchyError

Labels = tuple[str | None, ...]
Floats = NDArray[np.float64]


class Facts(ABC):
    """What the nodes of a column are. The manifest has it as JSON; everything else uses the attributes."""

    @property
    @abstractmethod
    def cells(self) -> Labels:
        """The texts of the nodes, `*` for suppressed rows left out."""

    @property
    def named(self) -> Labels | None:
        """The values that are named one by one; None where none are."""
        return None

    @abstractmethod
    def root(self, texts: Sequence[str | None]) -> int | None:
        """Which of the published texts stands for every value, if any."""

    @abstractmethod
    def cover(self, labels: pa.Array, root: int | None, kind: v.Kind) -> Cover:
        """The values that each published label covers; the labels may stand in another order than the nodes."""

    @abstractmethod
    def in_words(self, level: int, example: str | None) -> str:
        """How the column is shown, for the summary; the example is one of its cells other than `*`, if any."""

    @abstractmethod
    def builder(self, name: str) -> Builder:
        """A hierarchy with which the original can be read again."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """As JSON, the way it stands in the manifest."""


@dataclass(frozen=True)
class Bounds:
    """The least and the greatest number of each node; None for a node that is no interval."""

    low: tuple[float | None, ...]
    high: tuple[float | None, ...]

    @classmethod
    def of(cls, low: Floats, high: Floats) -> Bounds:
        """From numbers, nan for none."""
        return cls(*(tuple(None if np.isnan(x) else x for x in side.tolist()) for side in (low, high)))

    def take(self, nodes: Sequence[int]) -> Bounds:
        """The bounds of these nodes."""
        return Bounds(tuple(self.low[i] for i in nodes), tuple(self.high[i] for i in nodes))

    def numbers(self, nodes: Sequence[int]) -> tuple[Floats, Floats]:
        """Both bounds of these nodes as numbers; nan for none, and for the node -1."""
        low, high = (
            np.array([np.nan if i < 0 or side[i] is None else side[i] for i in nodes], dtype=np.float64)
            for side in (self.low, self.high)
        )
        return low, high

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {"low": list(self.low), "high": list(self.high)}

    @classmethod
    def from_dict(cls, told: Mapping[str, Any], nodes: int) -> Bounds | None:
        """From JSON; None where there are none."""
        if "low" not in told and "high" not in told:
            return None
        for side in ("low", "high"):
            if not isinstance(told[side], list) or len(told[side]) != nodes:
                raise ValueError("the nodes do not have a bound each")
            if not all(x is None or isinstance(x, (int, float)) for x in told[side]):
                raise ValueError("a bound is no number")
        return cls(tuple(told["low"]), tuple(told["high"]))


def texts_of(told: Any) -> Labels:
    """Names of nodes or values, from JSON; None is the missing one."""
    if not isinstance(told, list) or not all(name is None or isinstance(name, str) for name in told):
        raise ValueError("a node has a name that is no text")
    return tuple(told)


def places_of(told: Any, among: int) -> tuple[int, ...]:
    """Places in a list of a known length, from JSON."""
    if not isinstance(told, list) or not all(isinstance(place, int) and 0 <= place < among for place in told):
        raise ValueError("a place is not in the list")
    return tuple(told)


@dataclass(frozen=True)
class LevelNodes:
    """The nodes of one level of a hierarchy."""

    level: int
    labels: Labels
    bounds: Bounds | None = None  # of bands and dates
    parents: tuple[int, ...] | None = None  # the node one level up; None for the root

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        told: dict[str, Any] = {"level": self.level, "labels": list(self.labels)}
        told |= {} if self.bounds is None else self.bounds.to_dict()
        return told if self.parents is None else told | {"parents": list(self.parents)}

    @classmethod
    def from_dict(cls, told: Mapping[str, Any], above: int | None) -> LevelNodes:
        """From JSON; `above` is the number of nodes one level up, None for the root."""
        labels = texts_of(told["labels"])
        parents = None if above is None else places_of(told["parents"], above)
        if not isinstance(told["level"], int) or (parents is not None and len(parents) != len(labels)):
            raise ValueError("not a level of a hierarchy")
        return cls(told["level"], labels, Bounds.from_dict(told, len(labels)), parents)


@dataclass(frozen=True)
class LevelFacts(Facts):
    """A column at one level of its hierarchy: the nodes of that level and what lies above them.

    All of it follows from what is published and from what the caller declared, nothing from suppressed rows.
    """

    recipe: Recipe | None  # None also where the widths of bands would tell of values that are not shown
    declared: bool  # whether the values are a declared domain
    chosen: bool  # whether jali chose the hierarchy
    whole: bool  # whether intervals hold whole numbers or days
    levels: tuple[LevelNodes, ...]  # the published one first, the root last
    leaves: Labels | None = None  # the declared domain
    leaf_nodes: tuple[int, ...] | None = None  # (leaves,) the node of each at the published level

    @classmethod
    def of(cls, hierarchy: Hierarchy, level: int, used: Ints) -> LevelFacts:
        """The facts of a hierarchy from a level upward: of its nodes the used ones, and all where they are declared."""
        levels = tuple(_level_nodes(hierarchy, number) for number in range(level, hierarchy.height + 1))
        recipe = _published_recipe(hierarchy, level)
        made = cls(recipe, hierarchy.declared, hierarchy.chosen, hierarchy.whole, levels)
        if not hierarchy.declared:
            return made.trimmed(used.tolist())._without_hints()
        made = replace(
            made, leaves=tuple(hierarchy.levels[0].texts()), leaf_nodes=tuple(hierarchy.maps[level].tolist())
        )
        declared = {node for node, label in enumerate(levels[0].labels) if label is not None}
        return made.trimmed(sorted(declared | set(used.tolist())))

    @property
    def cells(self) -> Labels:
        """The nodes of the published level."""
        return self.levels[0].labels

    @property
    def named(self) -> Labels | None:
        """The declared domain."""
        return self.leaves

    @property
    def height(self) -> int:
        """The number of the root's level."""
        return self.levels[-1].level

    @property
    def always_root(self) -> bool:
        """Whether every cell is `*`: the published level is the root's."""
        return len(self.levels) == 1

    def root(self, texts: Sequence[str | None]) -> int | None:
        """The place of `*`, unless a value is called so."""
        is_root = ROOT in texts and (self.always_root or ROOT not in self.cells)
        return texts.index(ROOT) if is_root else None

    def trimmed(self, kept: list[int]) -> LevelFacts:
        """The facts with these nodes of the published level only, and what lies above them.

        A missing value counts as declared only where it is shown.
        """
        levels, at = [], kept
        for here in self.levels:
            at = [0] if here.parents is None else at
            bounds = None if here.bounds is None else here.bounds.take(at)
            small = LevelNodes(here.level, tuple(here.labels[i] for i in at), bounds)
            if here.parents is not None:
                above = sorted({here.parents[i] for i in at})
                position = {node: i for i, node in enumerate(above)}
                small = replace(small, parents=tuple(position[here.parents[i]] for i in at))
                at = above
            levels.append(small)
        return replace(self, levels=tuple(levels))._with_leaves([0] if len(levels) == 1 else kept)

    def _with_leaves(self, kept: list[int]) -> LevelFacts:
        """The facts with the leaves of the kept nodes, which have new numbers by now."""
        if self.leaves is None or self.leaf_nodes is None:
            return self
        position = {node: i for i, node in enumerate(kept)}
        missing = not self.always_root and None in self.cells
        pairs = zip(self.leaves, self.leaf_nodes, strict=True)
        leaves = [(leaf, position[node]) for leaf, node in pairs if leaf is not None or missing]
        return replace(self, leaves=tuple(leaf for leaf, _ in leaves), leaf_nodes=tuple(node for _, node in leaves))

    def _without_hints(self) -> LevelFacts:
        """Without levels whose number or width follows from values that are not shown."""
        *below, root = self.levels
        family = None if self.recipe is None else self.recipe.family
        if self.chosen or family in COUNTED:  # bands that jali chose are as wide as all values together make them
            below = [replace(here, parents=(0,) * len(here.labels)) for here in below[:1]]
        if below and (self.recipe is None or family in COUNTED):  # its number follows from all values together
            root = replace(root, level=below[0].level + 1)
        if family in ("mask", "prefix"):  # there may be as many levels as the longest text has letters, shown or not
            steps: list[LevelNodes] = []
            for here in below:
                steps = steps[:-1] if steps and steps[-1].labels == here.labels else steps
                steps = [*steps, here]
            first = self.levels[0].level
            below = [replace(here, level=first + step) for step, here in enumerate(steps)]
            root = replace(root, level=first + len(steps))
        return replace(self, levels=(*below, root))

    def cover(self, labels: pa.Array, root: int | None, kind: v.Kind) -> Cover:
        """The declared values of each node; else the values themselves, their intervals or masks, if they are known."""
        lowest, texts = self.levels[0], labels.to_pylist()
        nodes = [i for i in range(len(labels)) if i != root]
        number = {label: position for position, label in enumerate(lowest.labels)}
        place = [-1 if i == root else number[text] for i, text in enumerate(texts)]  # of each node in the hierarchy
        missing = texts.index(None) if None in texts else None
        if self.leaves is not None:
            node = np.full(len(lowest.labels), -1, dtype=np.int64)
            node[[place[i] for i in nodes]] = nodes
            leaves = node[np.asarray(self.leaf_nodes, dtype=np.int64)]
            return Cover.grouped(typed(self.leaves, kind), leaves, len(labels), root=root)
        if lowest.level == 0 and not self.always_root:
            known = typed([texts[i] for i in nodes], kind)
            return Cover.grouped(known, np.array(nodes, dtype=np.int64), len(labels), root=root, declared=False)
        if lowest.bounds is not None:
            low, high = lowest.bounds.numbers(place)
            if root is not None and not np.isnan(low).all():
                low[root], high[root] = np.nanmin(low), np.nanmax(high)
            return Cover.intervals(low, high, self.whole, kind, missing=missing, guessed=root)
        if self.recipe is not None and masks(self.recipe.family, texts) and not self.always_root:
            return Cover.masked(labels, missing=missing)
        return Cover.unknown(len(labels), missing=missing)

    def in_words(self, level: int, example: str | None) -> str:
        """The level, an example, and whether jali chose the hierarchy."""
        shown = "always *" if level == self.height else f"like {example}" if example else "empty or *"
        return f"level {level} of {self.height}, {shown}{'; hierarchy chosen by jali' if self.chosen else ''}"

    def builder(self, name: str) -> Builder:
        """The builder of the recipe; of a taxonomy the leaves, the published level and all above it."""
        if self.recipe is not None and self.recipe.family not in ("taxonomy", "suppress"):
            return of_recipe(self.recipe)
        if self.leaves is not None:
            return self._taxonomy(name)
        return Automatic() if self.recipe is None or self.recipe.family == "taxonomy" else of_recipe(self.recipe)

    def _taxonomy(self, name: str) -> Taxonomy:
        assert self.leaves is not None
        assert self.leaf_nodes is not None
        rows = []
        for leaf, node in zip(self.leaves, self.leaf_nodes, strict=True):
            if leaf is None:
                continue
            row: list[str | None] = [leaf]
            at = node
            for here in self.levels:
                row += [here.labels[at]] if here.level > 0 else []
                at = 0 if here.parents is None else here.parents[at]
            rows.append(tuple("" if text is None else text for text in row))
        return Taxonomy(tuple(rows), name)

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        told: dict[str, Any] = {
            "made_by": "" if self.recipe is None else str(self.recipe),
            "declared": self.declared,
            "chosen": self.chosen,
            "whole": self.whole,
            "levels": [here.to_dict() for here in self.levels],
        }
        if self.leaves is None or self.leaf_nodes is None:
            return told
        return told | {"leaves": list(self.leaves), "leaf_nodes": list(self.leaf_nodes)}

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> LevelFacts:
        """From JSON; a ValueError or KeyError where `to_dict` gives no such thing."""
        above = [*(len(here["labels"]) for here in told["levels"][1:]), None]
        levels = tuple(LevelNodes.from_dict(here, up) for here, up in zip(told["levels"], above, strict=True))
        declared, chosen, whole = (bool(told[name]) for name in ("declared", "chosen", "whole"))
        made = cls(_recipe_of(told["made_by"]), declared, chosen, whole, levels)
        if not declared:
            return made
        leaves, nodes = texts_of(told["leaves"]), places_of(told["leaf_nodes"], len(made.cells))
        if len(leaves) != len(nodes):
            raise ValueError("the leaves do not have a node each")
        return replace(made, leaves=leaves, leaf_nodes=nodes)


def _recipe_of(text: str) -> Recipe | None:
    """The recipe of a text, which a builder must be able to follow."""
    recipe = Recipe.read(text)
    try:
        if recipe is not None and recipe.family != "taxonomy":
            of_recipe(recipe)
    except HierarchyError as problem:
        raise ValueError("no hierarchy is made like this") from problem
    return recipe


def masks(family: Family | None, texts: Sequence[str | None]) -> bool:
    """Whether these labels show hidden characters as stars; some postal codes are too uneven for that."""
    return family == "mask" or (family == "zip" and any(text and ROOT in text and text != ROOT for text in texts))


def typed(texts: Sequence[str | None], kind: v.Kind) -> pa.Array:
    """Texts as the values of a kind that they were."""
    return v.as_kind("", pa.array(texts, pa.string()), kind)


def _level_nodes(hierarchy: Hierarchy, number: int) -> LevelNodes:
    here, last = hierarchy.levels[number], number == hierarchy.height
    bounds = None if here.low is None or here.high is None else Bounds.of(here.low, here.high)
    labels = (ROOT,) if last else tuple(here.texts())
    return LevelNodes(number, labels, bounds, None if last else tuple(hierarchy.parents[number].tolist()))


def _published_recipe(hierarchy: Hierarchy, level: int) -> Recipe | None:
    recipe = hierarchy.recipe
    if recipe is None or recipe.family == "taxonomy":
        return None if recipe is None else Recipe("taxonomy")  # not the name of somebody's file
    if hierarchy.chosen and level in (0, hierarchy.height) and recipe.family != "suppress":
        return None  # widths and units that jali chose follow the values, and here nothing is shown of them
    return recipe
