"""Figures of the house: python tools/house.py prints modules, lines, functions, what a first use loads, and rooms."""

from __future__ import annotations

import ast
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "jali"

FIRST_USE = """
import sys, jali
import pyarrow as pa
frame = pa.table({"age": [21, 22, 35, 36] * 3, "job": ["a", "b", "a", "c"] * 3, "ill": ["x", "y", "z"] * 4})
table = jali.table(frame, quasi={"age": jali.bands(10, 20), "job": jali.suppress()}, sensitive=["ill"])
jali.generalize(table, [jali.KAnonymity(2)]).save(sys.argv[1])
jali.load(sys.argv[1])
print(sum(name == "jali" or name.startswith("jali.") for name in sys.modules))
"""


def functions(tree: ast.Module) -> Iterator[int]:
    """The lines of each function, its decorators left out."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield (node.end_lineno or node.lineno) - node.lineno + 1


def loaded() -> int:
    """How many modules of jali a small lattice release loads when it is made, saved and read back."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", FIRST_USE, str(Path(folder) / "release")], capture_output=True, text=True, check=True
        )
    return int(done.stdout.split()[-1])


def rooms(lines: dict[Path, int]) -> Iterator[str]:
    """A line for each room, sub-rooms included; the front door has what stands in no room."""
    parts = [(path.relative_to(SOURCE).parts, count) for path, count in lines.items()]
    named = [(room[0] if len(room) > 1 else "front door", count) for room, count in parts]
    modules, total = Counter(room for room, _ in named), Counter[str]()
    for room, count in named:
        total[room] += count
    yield f"{'room':<22}  modules   lines"
    yield from (
        f"{room:<22}  {modules[room]:7}  {total[room]:6,}" for room in sorted(total, key=total.__getitem__)[::-1]
    )


def main() -> None:
    """Print the figures, a line each."""
    texts = {path: path.read_text("utf-8") for path in sorted(SOURCE.rglob("*.py"))}
    lines = {path: text.count("\n") for path, text in texts.items()}
    sizes = sorted(size for text in texts.values() for size in functions(ast.parse(text)))
    longest = max(lines, key=lambda path: lines[path])
    print(f"modules                 {len(texts)}")
    print(f"lines                   {sum(lines.values()):,}")
    print(f"module, median          {statistics.median(lines.values()):.0f}")
    print(f"module, longest         {lines[longest]} ({longest.relative_to(SOURCE)})")
    print(f"functions               {len(sizes):,}")
    print(f"function, median        {statistics.median(sizes):.0f}")
    print(f"function, p90           {sizes[int(0.9 * len(sizes))]}")
    print(f"function, longest       {sizes[-1]}")
    print(f"loaded by a first use   {loaded()}", *rooms(lines), sep="\n")


if __name__ == "__main__":
    main()
