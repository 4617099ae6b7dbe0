"""Identifiers: what a caller says of them, and the pseudonyms that take their place, keyed with a secret."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from jali.core.files import put_content
from jali.encoding import values as v
from jali.errors import InputError, nearest, path_of, told

TREATMENTS = ("drop", "pseudonym")
KEY_BYTES = 32
LETTERS = 32
"""A pseudonym is the first 128 bits of an HMAC-SHA256, so that two people never share one."""


@dataclass(frozen=True)
class Identifiers:
    """What a caller says of identifiers: which get pseudonyms, which are not even read, what only looks like one."""

    pseudonyms: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    allow: Mapping[str, str] = field(default_factory=dict)  # column → why it may be published
    path: str | Path | None = None  # of the key

    def key(self) -> bytes:
        """The key of the pseudonyms, read or made; nothing where there are none."""
        return secret(self.path) if self.pseudonyms else b""


def identifiers_of(
    named: Mapping[str, object], exact: Iterable[str], *, allow: Mapping[str, str] | None = None,
    pseudonym_key: str | Path | None = None,
) -> Identifiers:  # fmt: skip
    """The caller's arguments, checked; `exact` are the columns that are published as they are."""
    for name, given in named.items():
        if given is not None and given not in TREATMENTS:
            do = nearest(given, TREATMENTS) if isinstance(given, str) else 'write "drop" or "pseudonym"'
            raise InputError(
                f'identifier: column "{name}" is dropped or gets a pseudonym', got=repr(told(given)), do=do
            )
    kept = tuple(name for name, given in named.items() if given == "pseudonym")
    if pseudonym_key is not None and not kept:
        raise InputError("pseudonym_key is for pseudonyms", do='write identifier = { patient_id = "pseudonym" }')
    return Identifiers(kept, tuple(n for n in named if n not in kept), reasons_of(allow, exact), pseudonym_key)


def reasons_of(allow: Mapping[str, str] | None, exact: Iterable[str]) -> dict[str, str]:
    """The reasons for which columns are published that look like identifiers; InputError for one that is none."""
    if allow is not None and not isinstance(allow, Mapping):
        raise InputError("allow must map columns to reasons", do='e.g. allow={"ward": "names of wards, not of people"}')
    known = list(exact)
    for name, reason in (allow or {}).items():
        if name not in known:
            do = "allow is for columns in other and sensitive"
            raise InputError(f'allow: "{name}" is not published as it is', do=do)
        if not isinstance(reason, str) or not reason.strip():
            do = f'allow = {{ {name} = "why nobody is named by it" }}'
            raise InputError(f'allow: no reason is given for "{name}"', do=do)
    return {name: " ".join(reason.split()) for name, reason in (allow or {}).items()}


def secret(path: str | Path | None) -> bytes:
    """The key in a private file, which is made where there is none; without a path a fresh one that nobody keeps."""
    if path is None:
        return secrets.token_bytes(KEY_BYTES)
    place = path_of(path)
    if not place.exists():
        put_content(place, secrets.token_hex(KEY_BYTES) + "\n", overwrite=False, private=True)
    try:
        with place.open("rb") as file:
            open_to_others = os.name == "posix" and os.fstat(file.fileno()).st_mode & 0o077
            text = file.read(1 << 10).strip()
        key = bytes.fromhex(text.decode("ascii"))
    except OSError as problem:
        raise InputError(
            f"the key {place} cannot be read", got=problem.strerror, do="name a file of your own"
        ) from None
    except ValueError:
        key = b""
    if open_to_others:
        raise InputError(f"others can read the key {place}", do=f"run chmod 600 {place}, or make a new key")
    if len(key) != KEY_BYTES:
        do = "name a file that jali made, or one that does not exist yet"
        raise InputError(f"{place} holds no key for pseudonyms", do=do)
    return key


def pseudonyms(name: str, values: pa.Array, key: bytes) -> pa.Array:
    """A pseudonym for each value of a column, the missing one left missing: HMAC-SHA256(key, column and value).

    The column's name is a part of what is hashed, so that two columns with the same numbers are not tied together.
    """
    prefix = name.encode() + b"\x00"
    made = [
        None if text is None else hmac.new(key, prefix + text.encode(), hashlib.sha256).hexdigest()[:LETTERS]
        for text in v.texts(values).to_pylist()
    ]
    return pa.array(made, pa.string())
