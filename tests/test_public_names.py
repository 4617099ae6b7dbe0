"""Public names stay what they are, whatever was imported before.

`jali.audit` is a function and `jali.risk.audit` a room. Importing a submodule sets an attribute on its package, so a
lazy `__getattr__` and a module of the same name can shadow each other, depending on the order. Each scenario here runs
in a fresh interpreter.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

# What the scenarios share: the public modules (all other names are callable), a fresh start, and the check of one name.
SHARED = """
import importlib, pkgutil, sys, types

MODULES = {"datasets", "disclosure", "errors", "presence"}

def fresh():
    for name in [name for name in sys.modules if name.split(".")[0] == "jali"]:
        del sys.modules[name]
    return importlib.import_module("jali")

def is_what_it_says(name, value):
    if name == "__version__":
        return isinstance(value, str)
    if name in MODULES:
        return isinstance(value, types.ModuleType)
    return callable(value)

def ask_twice(jali, name):
    first, second = getattr(jali, name), getattr(jali, name)
    assert first is second, f"jali.{name} changed from {first!r} to {second!r}"
    assert is_what_it_says(name, first), f"jali.{name} is {first!r}"
    return first

def import_everything(jali):
    def fail(name):
        raise
    for module in pkgutil.walk_packages(jali.__path__, "jali.", onerror=fail):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
"""

SCENARIOS = {
    "one after the other": """
jali = fresh()
for name in jali.__all__:
    ask_twice(jali, name)
""",
    "each one first": """
for name in fresh().__all__:
    ask_twice(fresh(), name)
""",
    "before and after every module is imported": """
jali = fresh()
before = {name: ask_twice(jali, name) for name in jali.__all__}
import_everything(jali)
after = {name: ask_twice(jali, name) for name in jali.__all__}
changed = [name for name in before if before[name] is not after[name]]
assert not changed, f"other objects once every module is imported: {changed}"
""",
    "only after every module is imported": """
jali = fresh()
import_everything(jali)
for name in jali.__all__:
    ask_twice(jali, name)
""",
    "by from-import, which asks the module system as well": """
jali = fresh()
for name in jali.__all__:
    scope = {}
    exec(f"from jali import {name} as found", scope)
    assert scope["found"] is ask_twice(jali, name), name
""",
    "the list itself": """
jali = fresh()
assert jali.__all__, "jali has no public names"
assert len(set(jali.__all__)) == len(jali.__all__), "a name is listed twice"
assert set(jali.__all__) <= set(dir(jali)), f"dir(jali) lacks {set(jali.__all__) - set(dir(jali))}"
assert not hasattr(jali, "no_such_name"), "an unknown name must be an AttributeError"
""",
}


SLOW = ("each one first", "only after every module is imported", "by from-import, which asks the module system as well")


@pytest.mark.parametrize(
    "scenario",
    [pytest.param(s, id=name, marks=pytest.mark.slow if name in SLOW else ()) for name, s in SCENARIOS.items()],
)
def test_a_lazily_imported_module_never_shadows_a_public_name(scenario: str) -> None:
    """Each public name, asked twice, is the same object and of its kind, in whatever order things are imported."""
    done = subprocess.run([sys.executable, "-c", SHARED + scenario], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
