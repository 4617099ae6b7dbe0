"""Imports point down DESIGN's picture only. The tables below are the picture; the tests read the source with `ast`."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import is_hypothesis_test

# Each room and the rooms it may import from, besides itself and errors; "*" is every room that stands above it here.
# A new room is a new line. "jali" is the front door: __init__.py and the public names.
ROOMS: dict[str, str] = {
    "errors": "",
    "_version": "",
    "core": "",
    "principles": "core",
    "encoding": "core principles",
    "kernels": "core principles",
    "sources": "core principles encoding kernels",
    "search": "core principles encoding kernels",
    "query": "core encoding",
    "cover": "core encoding query",
    "estimates": "core encoding query cover",
    "graphical": "core principles encoding query cover estimates",
    "releases": "_version core principles encoding sources kernels search query cover estimates graphical",
    "measures": "core principles encoding search query cover estimates graphical releases",
    "publish": "core principles encoding search query cover estimates graphical releases measures",
    "risk": "core principles encoding sources kernels search query cover estimates graphical releases measures publish",
    "compare": "_version core principles encoding releases measures publish risk",
    "datasets": "core encoding sources",
    "reports": "core principles encoding search query cover estimates releases measures publish risk compare",
    "jali": "*",
    "job": "*",
    "reproduce": "*",
    "studio": "core principles encoding sources query releases measures publish risk compare reports jali job",
    "cli": "*",
    "__main__": "*",
}

# Third-party packages that only some rooms may import, inside functions too. Every other package that pyproject.toml
# declares may be imported anywhere, except from the rooms of the second table, which have a list of their own.
ONLY_IN: dict[str, str] = {
    "narwhals": "sources",
    "duckdb": "sources",
    "pyspark": "sources",
    "ibis": "sources",  # declared by another name, ibis-framework
    "psycopg": "sources",
    "pandas": "sources core",  # core/formats.py gives a table back as the frame that came in
    "polars": "sources core",
    "numba": "kernels",
    "scipy": "core",
    "pyreadstat": "sources",
    "python_calamine": "sources",  # declared by another name, python-calamine
    "starlette": "studio",
    "uvicorn": "studio",
    "sklearn": "measures",  # declared by another name, scikit-learn
}
ONLY_THESE: dict[str, str] = {
    "errors": "",
    "principles": "numpy",
}

# `import jali` alone loads none of these.
HEAVY = ("numpy", "pyarrow", "pandas", "polars", "narwhals", "numba", "duckdb", "matplotlib", "scipy", "rich", "click",
         "sklearn", "pyreadstat", "python_calamine", "pyspark", "ibis", "psycopg", "starlette",
         "uvicorn")  # fmt: skip

# Where a module is imported whose name stands in a variable, and what may stand in it. "strings": every text of the
# file that is the name of a module of ours counts as an import of it.
THROUGH_VARIABLES: dict[str, tuple[str, ...] | str] = {
    "src/jali/__init__.py": "strings",
    "src/jali/reproduce/__init__.py": "strings",
    "src/jali/core/formats.py": ("pandas", "polars"),
}
VARIABLE = "a variable"

LARGEST_FILE = 300_000  # bytes

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "jali"


class Import(NamedTuple):
    """One import: where it stands, and the full dotted name it asks for."""

    where: str
    room: str
    target: str


def module_name(path: Path) -> tuple[str, ...]:
    """The dotted name of a source file, `__init__` left out."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def room_of(target: str) -> str:
    """The room that a name within jali lives in: a file or folder of src/jali, else the front door."""
    parts = target.split(".")
    if len(parts) > 1 and ((PACKAGE / parts[1]).is_dir() or (PACKAGE / f"{parts[1]}.py").is_file()):
        return parts[1]
    return "jali"


def targets(node: ast.AST, package: tuple[str, ...]) -> Iterator[str]:
    """The full names that one node imports; `package` is what a relative import starts from."""
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=module, names=names, level=level):
            start = package[: len(package) - level + 1] if level else ()
            base = ".".join((*start, *([module] if module else [])))
            yield from (f"{base}.{alias.name}" for alias in names)
        case ast.Call(
            func=ast.Attribute(attr="import_module") | ast.Name(id="import_module" | "__import__"), args=[name, *_]
        ):
            yield name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else VARIABLE


def imports_of(source: str, path: Path) -> list[Import]:
    """Every import of a file, at whatever depth, under TYPE_CHECKING too: a type is knowledge as well."""
    return imports_among(list(ast.walk(ast.parse(source))), path)


def imports_among(nodes: Sequence[ast.AST], path: Path) -> list[Import]:
    """Every import among the nodes of a file."""
    name = module_name(path)
    package = name if path.name == "__init__.py" else name[:-1]
    room = name[1] if len(name) > 1 else "jali"
    place = str(path.relative_to(ROOT))
    named = THROUGH_VARIABLES.get(place, ())
    found = [
        Import(f"{place}:{getattr(node, 'lineno', 0)}", room, target)
        for node in nodes
        for target in targets(node, package)
        if target != VARIABLE or not named
    ]
    texts = [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    beside = [text for text in texts if is_module(text)] if named == "strings" else named
    return found + [Import(place, room, target) for target in beside]


def is_module(name: str) -> bool:
    """Whether a text is the dotted name of a module of ours."""
    path = PACKAGE.parent.joinpath(*name.split("."))
    return name.startswith("jali.") and (path.with_suffix(".py").is_file() or path.is_dir())


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """The nodes of a file that can be imports, or tell of them."""
    kinds = (ast.Import, ast.ImportFrom, ast.Call, ast.Constant, ast.If)
    return [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, kinds)]


@cache
def all_imports() -> list[Import]:
    return [found for path in sorted(PACKAGE.rglob("*.py")) for found in imports_among(nodes_of(path), path)]


def module_of(target: str) -> str:
    """The module that an import asks for, whether it names the module or something in it."""
    return target if is_module(target) else target.rpartition(".")[0]


def runtime_imports(path: Path) -> set[str]:
    """The modules of ours that a module imports when it runs, at whatever depth; what only types need is left out."""
    nodes = nodes_of(path)
    guards = [node for node in nodes if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)]
    typing = {id(inner) for guard in guards for line in guard.body for inner in ast.walk(line)}
    at_runtime = imports_among([node for node in nodes if id(node) not in typing], path)
    return {module_of(one.target) for one in at_runtime if one.target.startswith("jali.")} - {
        ".".join(module_name(path))
    }


def knots(graph: dict[str, set[str]]) -> list[list[str]]:
    """Modules that import each other in a circle: what is left when modules that import nothing left are taken away."""
    left = {name: set(targets) & set(graph) for name, targets in graph.items()}
    while free := [name for name, targets in left.items() if not targets & set(left)]:
        for name in free:
            del left[name]
    return [[name, *sorted(targets & set(left))] for name, targets in sorted(left.items())]


def is_ours(target: str) -> bool:
    return target == "jali" or target.startswith("jali.")


def allowed_rooms(room: str) -> set[str]:
    """The rooms that a room may import from, itself and errors among them."""
    listed = ROOMS.get(room, "")
    above = list(ROOMS)[: list(ROOMS).index(room)] if listed == "*" else listed.split()
    return {room, "errors", *above}


def breaks_the_picture(found: Import) -> bool:
    return room_of(found.target) not in allowed_rooms(found.room)


def declared_packages() -> set[str]:
    """What pyproject.toml says a user gets or may add (the development tools are not among them)."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    return {re.split(r"[^\w.-]", one)[0].replace("-", "_").lower() for one in wanted}


def may_import(room: str, package: str) -> bool:
    """Whether a room may import a third-party package."""
    if room in ONLY_THESE:
        return package in ONLY_THESE[room].split()
    if package in ONLY_IN:
        return room in ONLY_IN[package].split()
    return package in declared_packages()


def shown(offences: list[Import]) -> str:
    return "\n".join(f"{where}: {room} may not import {target}" for where, room, target in offences)


def test_every_file_lives_in_a_room_of_the_picture() -> None:
    """A room that the picture does not show gets a line in ROOMS first, and a reason."""
    rooms = {(*module_name(path), "jali")[1] for path in PACKAGE.rglob("*.py")}
    assert rooms <= set(ROOMS), f"add to ROOMS, with what it may import: {sorted(rooms - set(ROOMS))}"


def test_every_room_is_a_package() -> None:
    """Without an __init__.py a folder is imported under two names, and a class is not equal to itself."""
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    bare = sorted(str(folder.relative_to(ROOT)) for folder in folders if not (folder / "__init__.py").is_file())
    assert not bare, f"add an __init__.py to {bare}"


def test_the_picture_has_no_way_up() -> None:
    """Each room may import only from rooms that stand above it in ROOMS, so there is no circle."""
    order = list(ROOMS)
    for room in order:
        upward = allowed_rooms(room) - set(order[: order.index(room) + 1])
        assert not upward, f"{room} may import {sorted(upward)}, which ROOMS lists below it"


def test_imports_point_down_the_picture_only() -> None:
    """A module imports its own room and the rooms that ROOMS allows; nothing else of jali."""
    offences = [found for found in all_imports() if is_ours(found.target) and breaks_the_picture(found)]
    assert not offences, shown(offences)


def test_principles_know_arrays_and_no_other_tool() -> None:
    """They judge counts: files, text and programs are none of their business."""
    tools = {
        module_of(one.target) for one in all_imports() if one.room == "principles" and room_of(one.target) == "core"
    }
    assert tools == {"jali.core.arrays"}


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Local imports count: a function that imports upwards hides a knot, it does not untie it."""
    graph = {".".join(module_name(path)): runtime_imports(path) for path in PACKAGE.rglob("*.py")}
    assert not knots(graph), knots(graph)


def test_the_search_for_circles_fires() -> None:
    """Two modules that import each other are found; a chain is not."""
    assert knots({"a": {"b"}, "b": {"a"}, "c": {"a"}}) != []
    assert knots({"a": {"b"}, "b": {"c"}, "c": set()}) == []


def test_modules_are_imported_through_variables_only_where_it_is_said() -> None:
    """`import_module(name)` hides its target from every other law here."""
    assert not [found for found in all_imports() if found.target == VARIABLE]


def test_no_room_has_the_name_of_a_public_function() -> None:
    """Importing a room sets an attribute on the package: `jali.marginals` must stay the function."""
    import jali

    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir()}
    assert not rooms & {name for name in jali.__all__ if name not in ("datasets",)}


def test_only_sources_knows_dataframes_and_only_declared_packages_are_imported() -> None:
    """Third-party imports keep to ONLY_IN, to ONLY_THESE, and to what pyproject.toml declares."""
    offences = [
        found
        for found in all_imports()
        if (package := found.target.split(".")[0]) not in sys.stdlib_module_names
        and not is_ours(package)
        and not may_import(found.room, package)
    ]
    assert not offences, shown(offences)


@cache
def kinds_of_release() -> dict[str, str]:
    """The class of each kind of release, by its name, and what its manifest calls it."""
    found: dict[str, str] = {}
    for path in (PACKAGE / "releases").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            for line in node.body if isinstance(node, ast.ClassDef) else ():
                match line:
                    case ast.AnnAssign(target=ast.Name(id="kind"), value=ast.Constant(value=str(kind))):
                        found[node.name] = kind  # type: ignore[union-attr]
    return found


def kind_tests(source: str) -> list[int]:
    """The lines that ask which kind a release is: by its class, or by the name of its kind."""
    if ".kind" not in source and not any(name in source for name in kinds_of_release()):
        return []  # so that few files are parsed
    tree = ast.parse(source)
    modules = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and "releases" in str(node.module)]
    classes = {a.asname or a.name for node in modules for a in node.names if a.name in kinds_of_release()}
    return [node.lineno for node in ast.walk(tree) if _asks_the_class(node, classes) or _asks_the_name(node)]


def _asks_the_class(node: ast.AST, classes: set[str]) -> bool:
    """`isinstance(x, Angel)`, `issubclass(…)`, `type(x) is Angel`, and `case Angel():`."""
    match node:
        case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, named]):
            asked: list[ast.AST] = [named]
        case ast.Compare(left=ast.Call(func=ast.Name(id="type")), comparators=compared):
            asked = list(compared)
        case ast.MatchClass(cls=named):
            asked = [named]
        case _:
            return False
    names = {part.id for one in asked for part in ast.walk(one) if isinstance(part, ast.Name)}
    names |= {part.attr for one in asked for part in ast.walk(one) if isinstance(part, ast.Attribute)}
    return bool(names & classes)


def _asks_the_name(node: ast.AST) -> bool:
    """`x.kind == "angel"`, `x.kind in ("angel", …)`, `{"angel": …}[x.kind]`, `.get(x.kind)`, and `match x.kind:`."""
    match node:
        case ast.Compare(left=left, comparators=compared):
            sides = [left, *compared]
            texts = {part.value for one in sides for part in ast.walk(one) if isinstance(part, ast.Constant)}
            return any(_is_kind(one) for one in sides) and bool(texts & set(kinds_of_release().values()))
        case ast.Subscript(slice=asked) | ast.Call(func=ast.Attribute(attr="get"), args=[asked, *_]):
            return _is_kind(asked) and "release" in ast.unparse(asked)  # columns and rules have kinds too
        case ast.Match(subject=asked):
            return _is_kind(asked) and "release" in ast.unparse(asked)
    return False


def _is_kind(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "kind"


def test_only_releases_knows_which_kind_a_release_is() -> None:
    """A kind answers for itself: elsewhere a release is asked a question, or for a part that may be None."""
    rooms = [room for room in ROOMS if "releases" in allowed_rooms(room) and room != "releases"]
    outside = [path for path in PACKAGE.rglob("*.py") if (*module_name(path), "jali")[1] in rooms]
    texts = {path: path.read_text("utf-8") for path in outside}
    offences = [f"{path.relative_to(ROOT)}:{line}" for path, text in texts.items() for line in kind_tests(text)]
    assert not offences, offences


@pytest.mark.parametrize(
    ("source", "offends"),
    [
        ("from jali.releases.linked.angel import Angel\nisinstance(x, Angel)", True),
        ("from jali.releases.linked.angel import Angel as A\nisinstance(x, (str, A))", True),
        ("from jali.releases.linked import angel\nfrom jali.releases.marginals import Marginals\n"
         "type(x) is Marginals", True),
        ("from jali.releases.generalized import Recoded\nmatch x:\n    case Recoded():\n        pass", True),
        ('release.kind == "angel"', True),
        ('release.kind not in ("buckets", "concealed")', True),
        ("WHERE.get(release.kind, 1)", True),
        ("{}[release.kind]", True),
        ("match release.kind:\n    case _:\n        pass", True),
        ("from jali.releases.base import Release\nisinstance(x, (str, Path, Release))", False),
        ("from jali.risk.disclosure.buckets import Buckets\nisinstance(x, Buckets)", False),
        ('column.kind in ("number", "date")', False),
        ("WIDTHS[column.kind]", False),
        ("from jali.releases.linked.angel import Angel\ndef f(x: Angel) -> None: ...", False),
    ],
)  # fmt: skip
def test_the_search_for_kinds_fires(source: str, offends: bool) -> None:
    """Every way to ask for a kind is found; questions about columns and about being a release are not."""
    assert bool(kind_tests(source)) is offends


def test_loading_a_plain_release_imports_no_other_kind() -> None:
    """The base names other kinds only where types need them."""
    script = "import sys, jali.releases.generalized, jali.releases.load; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    others = ("linked", "marginals", "concealed", "presence")
    assert not [name for name in done.stdout.split() if name.startswith(tuple(f"jali.releases.{o}" for o in others))]


@pytest.mark.parametrize(
    ("line", "target"),
    [
        ("import jali.releases.store", "jali.releases.store"),
        ("from jali.releases import store", "jali.releases.store"),
        ("from ...releases import store", "jali.releases.store"),
        ("from ... import releases", "jali.releases"),
        ("from . import tally", "jali.search.lattice.tally"),
        ("from ..common import Partition", "jali.search.common.Partition"),
        ("def f():\n    from jali.releases import store", "jali.releases.store"),
        ("import importlib\nimportlib.import_module('jali.releases')", "jali.releases"),
        ("if TYPE_CHECKING:\n    import pandas as pd", "pandas"),
        ("import importlib\nname = 'jali.releases'\nimportlib.import_module(name)", VARIABLE),
    ],
)
def test_the_walker_sees_every_way_to_import(line: str, target: str) -> None:
    """What the laws above rest on: no spelling of an import escapes."""
    found = imports_of(line, PACKAGE / "search" / "lattice" / "lattice.py")
    assert (target, "search") in [(one.target, one.room) for one in found]


def test_the_laws_fire_on_the_offences_that_design_names() -> None:
    """search → releases, principles → encoding, pandas in releases, numba in principles, an undeclared package."""
    assert breaks_the_picture(Import("here", "search", "jali.releases.store"))
    assert breaks_the_picture(Import("here", "principles", "jali.encoding.table"))
    assert breaks_the_picture(Import("here", "encoding", "jali"))
    assert not breaks_the_picture(Import("here", "risk", "jali.releases.base"))
    assert not may_import("releases", "pandas")
    assert not may_import("principles", "pyarrow")
    assert not may_import("measures", "a_package_nobody_declared")
    assert may_import("sources", "duckdb")
    assert may_import("principles", "numpy")


def test_importing_jali_loads_nothing_heavy() -> None:
    """`import jali`, its names listed and its version asked for, costs no numpy and no engine."""
    script = f"import sys, jali; dir(jali); jali.__version__; print(*({set(HEAVY)} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_the_command_line_starts_without_tables() -> None:
    """`jali --help` waits for no numpy, no Arrow and no engine: commands load them when they run."""
    heavy = set(HEAVY) - {"click", "rich"}
    script = f"import sys, jali.cli.app; print(*({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def text_files() -> Iterator[Path]:
    """Everything that people write here: the top of the repository and its folders, without caches and environments."""
    folders = ("src", "tests", "docs", "benchmarks", "tools", ".ci")
    yield from (
        path for path in ROOT.iterdir() if path.is_file() and path.name != ".git"
    )  # a worktree's .git is a file
    for folder in folders:
        yield from (p for p in (ROOT / folder).rglob("*") if p.is_file() and "__pycache__" not in p.parts)


# Spelt so that this file does not find itself.
MACHINE_PATH = re.compile(r"(?<![\w.~-])/(?:work|root)/")
PACKAGE_HOST = re.compile(
    r"(?:https?|file)://\S*(?:py" + r"pi|pythonhosted|artifactory|nexus|devpi|/simple\b)|--(?:extra-)?index" + "-url"
)


def test_no_file_names_a_machine_or_a_package_host() -> None:
    """A clone works anywhere: no path of a developer's machine, no address of a package index."""
    offences = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path in text_files()
        for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1)
        if MACHINE_PATH.search(line) or PACKAGE_HOST.search(line)
    ]
    assert not offences, "\n".join(offences)


@pytest.mark.parametrize(
    "line",
    ["open('/" + "work/main/x')", "cd /" + "root/", "https://py" + "pi.org/simple", "pip install --index" + "-url x"],
)
def test_the_search_for_machines_and_hosts_fires(line: str) -> None:
    """The two patterns find what they are meant to find."""
    assert MACHINE_PATH.search(line) or PACKAGE_HOST.search(line)


def test_no_large_file_is_tracked() -> None:
    """No data in the repository, and no picture that should have been made smaller."""
    try:
        done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("git is not installed")
    if done.returncode != 0:
        pytest.skip("not a git checkout")
    sizes = {name: (ROOT / name).stat().st_size for name in done.stdout.split("\0") if name and (ROOT / name).is_file()}
    assert not {name: size for name, size in sizes.items() if size > LARGEST_FILE}


def test_every_law_is_tried_in_both_runs(request: pytest.FixtureRequest) -> None:
    """No law fixes its number of examples, and each has the mark by which the slow run selects it."""
    often = ROOT / "tests" / "oracles" / "often.py"
    others = [path for path in (ROOT / "tests").rglob("*.py") if path.name != "conftest.py" and path != often]
    fixed = "max_" + "examples"
    assert not [path.name for path in others if fixed in path.read_text("utf-8")], "write @examples(times)"
    laws = [item for item in request.session.items if is_hypothesis_test(getattr(item, "obj", None))]
    assert all(item.get_closest_marker("law") for item in laws)
    chosen = re.findall(r'-m "([^"]+)"', (ROOT / "Makefile").read_text("utf-8"))
    assert chosen == ["not slow and not paper", "slow or paper or law"]
