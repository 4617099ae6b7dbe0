"""The guard of the studio: who may ask, from which page, how much, and which files can be reached.

The server listens on loopback, where every user of the machine and every page in the browser can knock. Hence each
request is checked: its Host and Origin (DNS rebinding, other sites), a cookie that only the first address gives, and,
for data, the token of the tab in a header. Cookies are shared between the ports of a machine, so that another user's
server can see ours; the tab's token travels in the fragment of one redirect, which no server sees.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from jali.errors import InputError

TABLES = (".csv", ".tsv", ".txt", ".parquet", ".pq", ".xlsx", ".ods", ".dta", ".sav", ".sas7bdat", ".gz", ".zip",
          ".toml")  # fmt: skip
"""How the names of files end that can be opened: tables, and jobs."""
LARGEST_BODY = 16 << 20
"""Bytes of a request: a hierarchy as CSV is the largest thing that a page sends."""
TAB = "x-jali-tab"
"""The header with the token of a tab."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}
TOO_LARGE = f"at most {LARGEST_BODY >> 20} MB can be sent"


class BodyTooLargeError(Exception):
    """More bytes came than a request may have."""


class Keys:
    """The secrets of one run of the studio; the token of the first address opens it once."""

    def __init__(self) -> None:
        self.session = secrets.token_urlsafe(32)
        self.tab = secrets.token_urlsafe(32)
        self._first: str | None = None
        self._used: set[str] = set()

    def invite(self) -> str:
        """The token of a first address; a new one where the one before it was used."""
        if self._first is None:
            self._first = secrets.token_urlsafe(32)
        return self._first

    def redeem(self, token: str) -> bool:
        """Whether a token opens the studio; it does so once."""
        if self._first is None or not _same(token, self._first):
            return False
        self._used.add(self._first)
        self._first = None
        return True

    def was_valid(self, token: str) -> bool:
        """Whether a token once was one of ours: only somebody who saw a first address has it."""
        return any(_same(token, used) for used in self._used)


def _same(one: str, other: str) -> bool:
    return secrets.compare_digest(one.encode("utf-8", "replace"), other.encode())


class Guard:
    """Lets a request through to the application, or answers it."""

    def __init__(self, app: ASGIApp, *, keys: Keys, port: int, invited: Callable[[str], None]) -> None:
        self.app, self.keys, self.invited = app, keys, invited
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self.cookie = f"jali-studio-{port}"  # one name a port: two studios do not overwrite each other's
        self.last = time.monotonic()  # when a page last asked for something

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the request, limit its body, add our headers to the answer; a failure shows no value."""
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await refusal(scope, receive, _with_headers(send))
            return
        self.last = time.monotonic()
        began = False

        async def tracked(message: Message) -> None:
            nonlocal began
            began = True
            await _with_headers(send)(message)

        try:
            await self.app(scope, _limited(receive), tracked)
        except BodyTooLargeError:
            await _plain(413, TOO_LARGE)(scope, receive, _with_headers(send))
        except Exception as problem:
            print(f"jali studio: {place_of(problem)}", file=sys.stderr)
            if not began:
                await _plain(500, place_of(problem))(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """The answer to a request that goes no further; None for one that does."""
        if headers.get("host") not in self.hosts:
            return _plain(421, "this is not the address of the studio")
        origin = headers.get("origin")
        if origin is not None and origin.removeprefix("http://") != headers["host"]:
            return _plain(403, "requests of other sites are refused")
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            first = scope["path"] == "/" and b"token=" in scope["query_string"]  # a link in another page, once
            if not first:
                return _plain(403, "requests of other sites are refused")
        if scope["method"] not in ("GET", "POST"):
            return _plain(405, "the studio knows GET and POST")
        if scope["method"] == "POST" and origin is None:
            return _plain(403, "a request that changes something names its origin")
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length) > LARGEST_BODY:
            return _plain(413, TOO_LARGE)
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token")
        if given and scope["path"] == "/" and scope["method"] == "GET":
            return self._first(given[0])
        return self._unknown(scope, headers)

    def _first(self, token: str) -> Response:
        """The answer to a first address: the cookie, and an address without the token."""
        if not self.keys.redeem(token):
            if self.keys.was_valid(token):
                self.invited(self.keys.invite())
                return _plain(403, "This address was used already. A new one stands in the terminal.")
            return _plain(403, "This address is not known. Open the one that stands in the terminal.")
        answer = RedirectResponse(f"/#{self.keys.tab}", status_code=303)
        answer.set_cookie(self.cookie, self.keys.session, httponly=True, samesite="strict", path="/")
        return answer

    def _unknown(self, scope: Scope, headers: Headers) -> Response | None:
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            cookie = None
        if cookie is None or not _same(cookie.value, self.keys.session):
            return _plain(403, "Open the address that stands in the terminal.")
        if scope["path"].startswith("/api/") and not _same(headers.get(TAB, ""), self.keys.tab):
            return _plain(403, "This tab is not known. Open the address that stands in the terminal.")
        return None


def _plain(status: int, text: str) -> Response:
    return PlainTextResponse(text, status_code=status, headers={"connection": "close"})


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            message = {**message, "headers": [*message.get("headers", []), *own]}
        await send(message)

    return sending


def _limited(receive: Receive) -> Receive:
    """The body as it comes, until it is too much: what is left is never read."""
    seen = 0

    async def receiving() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > LARGEST_BODY:
            raise BodyTooLargeError
        return message

    return receiving


def place_of(problem: BaseException) -> str:
    """What nobody foresaw: its kind and its place only, since its text could hold values of the table."""
    import traceback

    frames = traceback.extract_tb(problem.__traceback__)
    ours = [frame for frame in frames if f"{os.sep}jali{os.sep}" in frame.filename] or frames
    where = f" in {os.path.basename(ours[-1].filename)}:{ours[-1].lineno}" if ours else ""
    return f"a bug ({type(problem).__name__}{where}); please report it"


# -- files -----------------------------------------------------------------------------------------------------------


class Folder:
    """The folder that the studio may read and write below; symbolic links are followed before that is judged."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))

    def inside(self, name: str | Path, base: Path | None = None) -> Path:
        """The real path of a name relative to `base`, by default the folder; an InputError outside of the folder."""
        text = str(name)
        if not text or "\0" in text:
            raise InputError("a name of a file is missing", do="write one, e.g. release")
        try:
            found = Path(os.path.realpath((base or self.root) / Path(text).expanduser()))
        except RuntimeError:
            raise InputError("no such home folder", do="write the whole path") from None
        if not found.is_relative_to(self.root):
            raise InputError(f"only files below {self.root} can be used", do="start the studio in another folder")
        return found

    def new(self, name: str, base: Path) -> Path:
        """Where something new goes, relative to `base`: not the folder itself, and no hidden name."""
        found = self.inside(name, base)
        if found == self.root or found.name.startswith("."):
            raise InputError("this is no name for something new", got=name, do="write another one, e.g. release")
        return found

    def tables(self) -> list[str]:
        """The tables below the folder, the nearest first; hidden ones and links to elsewhere are left out."""
        found = []
        for place, folders, names in os.walk(self.root):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            near = [name for name in names if name.lower().endswith(TABLES) and not name.startswith(".")]
            paths = [os.path.join(place, name) for name in near]
            inside = [path for path in paths if Path(os.path.realpath(path)).is_relative_to(self.root)]
            found += [os.path.relpath(path, self.root) for path in inside]
        return sorted(found, key=lambda name: (name.count(os.sep), name))

    def relative(self, path: Path) -> str:
        """A path below the folder as the page shows it."""
        return path.relative_to(self.root).as_posix()
