"""jali disclosure: what an attacker who knows more facts can learn."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from jali.cli.shared import PATH, emit, json_option, quiet_option, release_argument, reserve_file

MOST = 10_000
"""Numbers of facts that one call may ask for."""


@click.command()
@release_argument
@click.option("-k", "facts", default="0..13", show_default=True, metavar="K", help="How many facts: 3, 0..13 or 1,3,5.")
@click.option("--sensitive", metavar="COLUMN", help="Which sensitive column, where the release has several.")
@click.option("--witness", is_flag=True, help="Also tell the worst knowledge, for the largest K.")
@click.option("--knowledge", type=PATH, metavar="FILE", help="Also judge an attacker who knows what a JSON file says.")
@click.option("--seed", type=int, help="For --knowledge, where worlds must be drawn because they cannot be counted.")
@click.option("--plot", type=PATH, metavar="FILE", help="Draw the curve, as .svg or .png.")
@json_option
@quiet_option
def disclosure(
    *, release: Path, facts: str, sensitive: str | None, witness: bool, knowledge: Path | None, seed: int | None,
    plot: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Say how much an attacker with background knowledge can learn.

    For each number of facts K, how sure the worst attacker is of somebody's value: one who knows K implications
    ("if Ann has flu, so has Bob"), and one who can only rule out K values.
    """
    from jali import disclosure as found
    from jali.charts import require_form
    from jali.releases.base import load
    from jali.releases.summary import many

    asked = _numbers(facts)
    if plot is not None:
        require_form(plot)
        reserve_file(plot, overwrite=True)
    known = None if knowledge is None else found.read_knowledge(knowledge)
    published = load(release)
    curve = found.curve(published, asked, sensitive=sensitive)
    worst = found.witness(published, max(asked), sensitive=sensitive) if witness else None
    risk = None if known is None else found.risk(published, known, sensitive=sensitive, seed=seed)
    if plot is not None:
        curve.plot(plot)
    if as_json:
        extra: dict[str, Any] = {} if worst is None else {"witness": worst.to_dict()}
        extra |= {} if risk is None else {"risk": _plain(risk)}
        emit(curve.to_dict() | extra)
        return
    click.echo(repr(curve))
    if worst is not None:
        told = many(len(worst.knowledge), "fact")
        more = "; more would add nothing" * (len(worst.knowledge) < max(asked))
        click.echo(f"\nThe worst {told}{more}\n{worst!r}")
    if risk is not None:
        click.echo(f"\nWith the knowledge of {knowledge}: {risk} that {risk.target} ({risk.how})")
    if plot is not None:
        click.echo(f"Saved in {plot}")


def _plain(risk: Any) -> dict[str, Any]:
    return {
        "probability": float(risk), "low": risk.low, "high": risk.high, "exact": risk.exact, "how": risk.how,
        "target": str(risk.target),
    }  # fmt: skip


def _numbers(text: str) -> list[int]:
    """3, 0..13 and 1,3,5 as numbers."""
    from jali.errors import InputError

    if span := re.fullmatch(r"\s*(\d+)\s*\.\.\s*(\d+)\s*", text):
        low, high = int(span[1]), int(span[2])
        if low <= high < low + MOST:
            return list(range(low, high + 1))
        if low <= high:
            raise InputError("-k asks for too many numbers of facts", got=text, do=f"ask for at most {MOST:,} at once")
    elif re.fullmatch(r"\s*\d+\s*(,\s*\d+\s*)*", text):
        return [int(number) for number in text.split(",")]
    raise InputError("-k is no number of facts", got=text, do="write 3, 0..13 or 1,3,5")
