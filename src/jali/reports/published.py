"""What a report says of what was published: the tables' first rows, the columns, and how it was made."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from jali.core.text import Html, Section, bullets, element, figure, html_table, joined, listed, paragraphs, sentence
from jali.encoding import values as v
from jali.releases.column import Published
from jali.releases.marginals import Marginals
from jali.releases.summary import cut, many
from jali.reports.material import Material, a_kind

ROWS = 8
"""The number of rows that are shown of each table."""
ROLES = {
    "quasi": "quasi-identifier", "sensitive": "sensitive", "other": "other", "weights": "weights",
    "bucket": "bucket number", "batch": "batch number", "count": "count",
}  # fmt: skip


def published(m: Material) -> Section:
    """The tables and their columns."""
    parts: list[object] = [_sizes(m), _columns(m)]
    parts += [] if m.release.collected is None else _junction_tree(m.release.collected)
    parts += [_first_rows(name, table) for name, table in m.release.tables.items()]
    return Section("published", "What was published", joined(parts))


def _sizes(m: Material) -> Html:
    counts = m.manifest["counts"]
    known = {
        "rows": "Rows", "people": "People", "groups": m.release.words.shown, "suppressed": "Suppressed rows",
    }  # fmt: skip
    rows = [(label, f"{counts[key]:,}") for key, label in known.items() if isinstance(counts.get(key), int)]
    rows += [
        (f"Table “{name}”", f"{many(t.num_rows, 'row')} × {many(t.num_columns, 'column')}")
        for name, t in m.release.tables.items()
    ]
    return html_table(("What", "Size"), rows, caption=sentence(a_kind(m.release)).rstrip("."), numbers=(1,), named=True)


def _columns(m: Material) -> Html:
    rows = [
        (f["name"], ROLES.get(str(f.get("role")), f.get("role") or ""), *place, line)
        for f, (place, line) in zip(m.columns, _shown(m), strict=True)
    ]
    several = () if m.release.batched is None else ("Table",)
    return html_table(("Column", "Role", *several, "How it is shown"), rows, caption="Columns", named=True)


def _shown(m: Material) -> list[tuple[tuple[str, ...], str]]:
    """Of each column of the manifest in which table it stands, where columns stand in several, and how it is shown."""
    release, batched, collected = m.release, m.release.batched, m.release.collected
    if batched is not None:
        every = [*(c for t in batched.contents.tables for c in t.columns), *batched.contents.hidden]
        lines = [_line(m, column) for column in every] + [""] * (len(m.columns) - len(every))
        return [((str(f.get("table", "")),), line) for f, line in zip(m.columns, lines, strict=True)]
    of = {c.name: _line(m, c) for c in release.columns} if collected is None else _in_marginals(collected)
    return [((), of.get(f["name"], "")) for f in m.columns]


def _in_marginals(release: Marginals) -> dict[str, str]:
    """At which level each column stands in which marginals."""
    told: dict[str, str] = {}
    for chain in release.chains:
        own = [(at, levels[chain.name]) for at, (levels, _) in enumerate(release.marginals, 1) if chain.name in levels]
        places = [
            f"{chain.like(level)} in marginal{'s' if len(at) > 1 else ''} {listed(at)}"
            for level in dict.fromkeys(level for _, level in own)
            if (at := [str(place) for place, other in own if other == level])
        ]
        told[chain.name] = "; ".join(places) or "in no marginal"
    return told


def _line(m: Material, column: Published) -> str:
    return m.release.column_line(column).removeprefix(f"{column.name}: ")


def _junction_tree(release: Marginals) -> list[Html]:
    """How the marginals hang together, and what an analyst takes for granted who combines them."""
    chains = {chain.name: chain for chain in release.chains}
    rows = [
        (f"marginal {at}", ", ".join(chains[name].like(level) for name, level in levels.items()), f"{cells.num_rows:,}")
        for at, (levels, cells) in enumerate(release.marginals, start=1)
    ]
    table = html_table(("Marginal", "Columns", "Cells"), rows, caption="The marginals", numbers=(2,), named=True)
    said = "Combined by maximum entropy, the marginals say no more than they must. An analyst takes for granted:"
    return [
        figure(release.picture(), "junction-tree", table), paragraphs(said),
        bullets([sentence(text) for text in release.independencies()]),
    ]  # fmt: skip


def _first_rows(name: str, table: pa.Table) -> Html:
    first = table.slice(0, ROWS)
    columns = [_texts(first[column]) for column in first.column_names]
    rest = table.num_rows - first.num_rows
    caption = f"Table “{name}”, its first rows" + (f" ({rest:,} more follow)" if rest else "")
    rows = [["" if text is None else cut(text) for text in row] for row in zip(*columns, strict=True)]
    numbers = [i for i, c in enumerate(columns) if c and all(t is None or _is_number(t) for t in c)]
    return html_table(first.column_names, rows, caption=caption, numbers=numbers)


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    """Cells as they stand in the files."""
    array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return list(v.texts(array).to_pylist())


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def made(m: Material) -> Section:
    """How it was made, as the manifest tells."""
    rows = [(key.replace("_", " ").capitalize(), _plain(value)) for key, value in m.manifest["method"].items()]
    rows += [(f"Values of {name}", f"{told} domain") for name, told in m.manifest["domain"].items()]
    rows.append(("Earlier releases", ", ".join(m.manifest["earlier_releases"]) or "none"))
    rows.append(("Made with", f"jali {m.manifest['jali']}"))
    table = html_table(("What", "As the manifest says"), rows, caption="How the release was made", named=True)
    return Section("made", "How it was made", element("div", table))


def _plain(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
