"""The policy as two views show it: who may read the release, every threshold as a field, and what the release reaches.

The verdict follows from these thresholds. A threshold of one's own stands in the job beside the preset.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from jali.core.text import Html, bullets, element, joined, percent
from jali.errors import InputError
from jali.principles.base import exact
from jali.risk.policy import PRESETS, Policy, policy_of
from jali.studio.state import Document
from jali.studio.views.view import Action, acting, button, choice

if TYPE_CHECKING:
    from jali.studio.session import Run, Session

POLICIES = {
    "public": "public: anybody may read it",
    "researchers": "researchers: under a contract",
    "internal": "internal: within the house",
}
SHARES = {
    "highest_risk": "Nobody is found with a chance above",
    "average_risk": "On average a person is found with a chance of at most",
    "largest_belief": "No sensitive value of anybody is believed with more than",
    "disclosure": "With these facts more no belief is above",
    "exposed.homogeneity": "People of groups in which nearly all have one value: at most",
    "exposed.background knowledge": "People exposed to somebody who can rule out one value: at most",
    "exposed.linkage": "People exposed to somebody who looks them up by their quasi-identifiers: at most",
    "exposed.presence": "People of whom it is as good as known that they are in the table: at most",
    "singled_out": "Rows that columns published as they are tell from all others: at most",
}
"""The thresholds that are shares, in words."""
FACTS = "Facts that this attacker knows more"
TICKS = {
    "identifiers": "Columns that look like identifiers may be published",
    "others": "Columns that nobody declared sensitive may be published as they are",
    "promise": "Every sensitive column needs a promise about it",
    "algorithm": "The attacker knows how jali chose the groups",
}
"""The thresholds that hold or not."""
SIGNS = {"met": "✓", "missed": "!", "grave": "✕", "not judged": "?"}
HINT = 'Write a share as 1/20, 5 %, 0.05 or "1 in 20". Empty: what the preset says.'
_RATIO = re.compile(r"(\d+)\s*(?:in|of|out of|:)\s*(\d+)")


# -- actions ---------------------------------------------------------------------------------------------------------


def set_policy(session: Session, *, value: str) -> None:
    """Judge the release by a preset, without thresholds of one's own."""
    if value not in POLICIES:
        raise InputError(f'no policy "{value}"', do=f"it is one of {', '.join(POLICIES)}")
    _record(session, f"policy: {value}", {"preset": value})


def set_threshold(session: Session, *, key: str, value: Any) -> None:
    """Change one threshold; an empty field goes back to what the preset says."""
    given = dict(session.job.get("policy", {"preset": "public"}))
    policy, first = policy_of(given), _preset(given)
    told: Any
    if key in TICKS and isinstance(value, bool):
        told, same = value, value == getattr(first, key)
    elif key == "facts" and isinstance(value, str):
        told = int(exact("facts", value)) if value.strip() else first.facts
        same = told == first.facts
    elif key in SHARES and isinstance(value, str):
        told, same = _share_given(key, value, policy, first)
    else:
        raise InputError("the page sent something that the studio does not know", do="reload the page")
    name = key.partition(".")[0]
    own = {one: kept for one, kept in given.items() if one != name} | ({} if same else {name: told})
    if policy_of(own) == policy:  # which also refuses what is no threshold
        return
    _record(session, f"policy: {key} {'as the preset' if same else _said(value)}", own)


def _said(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value).strip()


def _share_given(key: str, text: str, policy: Policy, first: Policy) -> tuple[Any, bool]:
    """A threshold as the job spells it, and whether the preset says the same; attacks stand in one table."""
    name, _, attack = key.partition(".")
    if not attack:
        most = _least(first, name)
        found = share_of(name, text) if text.strip() else most
        return None if found is None else _spelled(found), found == most
    limits = dict(policy.limits)
    if text.strip():
        limits[attack] = share_of(name, text)
    elif attack in first.limits:
        limits[attack] = first.limits[attack]
    else:
        limits.pop(attack, None)
    return {one: _spelled(share) for one, share in limits.items()}, limits == first.limits


def share_of(name: str, text: str) -> Fraction:
    """A share as people write it.

    >>> [str(share_of("", text)) for text in ("1/20", "5 %", "0,05", "1 in 20", "0")]
    ['1/20', '1/20', '1/20', '1/20', '0']
    """
    plain = text.strip().lower().replace(",", ".")
    ratio = _RATIO.fullmatch(plain)
    if ratio is not None:
        plain = f"{ratio[1]}/{ratio[2]}"
    found = exact(name, plain.removesuffix("%").strip()) / (100 if plain.endswith("%") else 1)
    if not 0 <= found <= 1:
        raise InputError(f"{name} is a share from 0 to 1", got=text.strip(), do="write e.g. 1/20 or 5 %")
    return found


def _spelled(share: Fraction) -> int | str:
    return int(share) if share.denominator == 1 else str(share)


def _least(policy: Policy, name: str) -> Fraction | None:
    """A threshold of a policy, where it has one; of an attack by its name."""
    attack = name.partition(".")[2]
    if attack:
        return policy.limits.get(attack)
    given = getattr(policy, name)
    return None if given is None else exact(name, given)


def _preset(given: Mapping[str, Any]) -> Policy:
    """The preset that a policy of a job begins with; without one, a policy that asks for nothing."""
    return PRESETS.get(str(given.get("preset", "public" if not given else "")), Policy())


def _record(session: Session, said: str, policy: Document) -> None:
    """Make it the policy; a release that was judged is judged again at once."""
    before = judged(session, session.job)
    session.record(said, session.job | {"policy": policy})
    if before is not None and before.status in ("done", "running"):
        algorithm = json.loads(before.key)[1]["algorithm"]
        session.want("decide", document=session.job, algorithm=algorithm)


ACTIONS: dict[str, Action] = {"policy": set_policy, "threshold": set_threshold}
"""What a view that shows the policy can do."""


# -- what the release reaches ----------------------------------------------------------------------------------------


def judged(session: Session, job: Document, *, apart: tuple[str, ...] = ("output",)) -> Run | None:
    """The judged release of a job, or of the same one apart from these keys; the most thorough one."""

    def without(document: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in document.items() if key not in apart}

    steps = reversed(session.opened.history)
    same = [job, *(document for _, document in steps if without(document) == without(job))]
    for algorithm in (True, False):
        for document in same:
            run = session.find("decide", document=document, algorithm=algorithm)
            if run is not None and not (algorithm and run.status in ("stopped", "failed")):
                return run
    return None


def _reached(session: Session) -> tuple[Mapping[str, list[str]], str]:
    """What the release reaches of each threshold, in words, and what to say where there is none."""
    run = judged(session, session.job, apart=("output", "policy"))
    found = None if run is None else run.result
    if found is None:
        return {}, "Once a release was judged, the last column says what it reaches."
    same = json.loads(run.key)[1]["document"].get("policy") == session.job.get("policy") if run is not None else False
    told: dict[str, list[str]] = {}
    for threshold, column, reached, outcome in found["judged"]:
        about = f"{column} " if column and sum(one[0] == threshold for one in found["judged"]) > 1 else ""
        told.setdefault(threshold, []).append(f"{SIGNS[outcome] if same else ''} {about}{reached}".strip())
    facts = policy_of(session.job.get("policy") or None).facts
    for name, share in found["reaches"].items():
        told.setdefault("disclosure" if name == f"disclosure.{facts}" else name, [share])
    return told, "The last column is what the release reaches that was made last for this job."


# -- the page --------------------------------------------------------------------------------------------------------


def section(session: Session, *, words: bool) -> Html:
    """Who may read the release, and every threshold with what the release reaches; with `words` also as sentences."""
    given = session.job.get("policy", {})
    preset = str(given.get("preset", "own" if given else "public"))
    options = POLICIES if preset in POLICIES else {"own": "thresholds of its own", **POLICIES}
    chosen = choice("Who may read the release", "policy", options, preset, id_="policy")
    reached, said = _reached(session)
    rows = element("ul", *_rows(session.job, reached), class_="thresholds")
    own = sorted(set(given) - {"preset"})
    count = "one threshold is" if len(own) == 1 else f"{len(own)} thresholds are"
    mine = [element("p", element("b", f"{count.capitalize()} your own. "),
                    button(f"Back to {preset}", "policy", kind="plain", id_="policy-back", value=preset),
                    class_="flag soft")] if own and preset in POLICIES else []  # fmt: skip
    body = [element("p", HINT, " ", said, class_="quiet"), rows]
    more = element("details", element("summary", "Thresholds of your own" if words else "What the verdict asks"), *body,
                   id="thresholds")  # fmt: skip
    if not words:
        return element("section", chosen, *mine, more, id="policy-of")
    lead = element("p", "The verdict of the last step follows from these thresholds.", class_="quiet")
    said_ = bullets(list(policy_of(given or None).words()))
    return element("section", element("h2", "What the verdict asks"), lead, chosen, *mine, said_, more, id="policy-of")


def _rows(job: Mapping[str, Any], reached: Mapping[str, list[str]]) -> Iterator[Html]:
    given = job.get("policy", {})
    policy, first = policy_of(given or None), _preset(given)
    hidden = job.get("method") == "conceal" or "presence" in policy.limits
    for key, label in SHARES.items():
        if key == "exposed.presence" and not hidden:
            continue
        if key == "disclosure":
            own = element("input", type="text", id="threshold-facts", value=str(policy.facts), inputmode="numeric",
                          autocomplete="off", **acting("threshold", key="facts"))  # fmt: skip
            yield _row(FACTS, own, "facts", own_value=policy.facts != first.facts, preset=str(first.facts), reached=[])
        most, usual = _least(policy, key), _least(first, key)
        id_ = f"threshold-{re.sub(r'[^a-z]+', '-', key)}"
        shown = "" if most is None else str(most)
        field = element("input", type="text", id=id_, value=shown, placeholder="no limit", autocomplete="off",
                        aria_describedby=f"{id_}-is", **acting("threshold", key=key))  # fmt: skip
        is_ = "" if most is None else _means(key, most)
        yield _row(label, joined([field, element("span", is_, class_="hint", id=f"{id_}-is")]), id_,
                   own_value=most != usual, preset="no limit" if usual is None else str(usual),
                   reached=reached.get(key, []))  # fmt: skip
    for key, label in TICKS.items():
        box = element("input", type="checkbox", id=f"threshold-{key}", checked="" if getattr(policy, key) else None,
                      **acting("threshold", key=key))  # fmt: skip
        yield _row(label, box, f"threshold-{key}", own_value=getattr(policy, key) != getattr(first, key),
                   preset="yes" if getattr(first, key) else "no", reached=reached.get(key, []))  # fmt: skip


def _means(key: str, most: Fraction) -> str:
    """A share in other words."""
    if key == "highest_risk" and most:
        return f"groups of at least {-(-most.denominator // most.numerator):,} people"
    return "nobody" if not most and key.startswith("exposed") else percent(float(most))


def _row(label: str, field: Html, id_: str, *, own_value: bool, preset: str, reached: list[str]) -> Html:
    lines = [element("span", text, class_=f"reached {_outcome(text)}".strip()) for text in reached]
    kept = element("span", f"yours; the preset: {preset}" if own_value else "", class_="hint own")
    for_ = id_ if id_.startswith("threshold") else f"threshold-{id_}"
    return element("li", element("label", label, for_=for_), element("div", field, kept, class_="field"),
                   element("div", *lines), class_="own" if own_value else None)  # fmt: skip


def _outcome(text: str) -> str:
    return {"✓": "met", "!": "change", "✕": "grave", "?": "unknown"}.get(text[:1], "")
