"""The application and its server: routes between the guard and the session, heard on loopback alone.

How to add a view. One module in `views/` makes a `View` (its docstring says what of) and one line in
`views/__init__.py` names it; then it is a step of the navigation. The parts:

- `render(session, query)` returns HTML made with `core/text.py` and `views/view.py`. It reads `session.job` (a copy of
  the job, as TOML would hold it) and asks for results: `run = session.want("task", **arguments)` gives the run with
  these arguments, which begins if there is none. `run.result` is None until it is done (or has sent a part):
  `waiting(run, "Searching …")` stands in its place. The page fetches the view again whenever the job changes or a run
  ends. `session.find` looks without beginning. `query` is what stands after `?` in `#name?key=value`.
- An action, `action(session, **arguments)`, changes the job with `session.record("what was done", job)` or begins a
  task with `session.again("task", …)`. It raises InputError to refuse; the page shows its line. An element does it
  with `button(…)`, `choice(…)` or the attributes `acting("action", …)`: a button when it is pressed, a field with its
  `value` when it changes, a form with its fields when it is sent. No JavaScript is needed for any of that.
- A task, `task(desk, **arguments)`, runs in the worker: lane "long" (searches, one after the other), "look" (one
  release at a time, beside them) or "quick" (beside both). It takes what it needs from `desk.whole()`,
  `desk.table(document)`, `desk.release(document)`, passes `on_step=desk.step` on, says what it does with `desk.say`,
  draws within `with desk.drawing`, sends what can be shown early with `desk.part`, and returns what JSON can hold:
  figures or HTML, never a whole table. Its arguments are the key of its result: pass the parts of the job that it
  depends on, not all of it.
- A view that needs more than that names a module of `static/` as `script`: `attach(root, studio)` is called each time
  that its HTML was replaced; `studio.act(action, arguments)`, `studio.go(hash)` and `studio.say(text)` are there.
- Edited hierarchies: `session.opened.keep_text(column, csv)` gives the name to write into the job as `taxonomy`.
- HTML may use `style` only through `page_part`; the policy of the page forbids styles in it.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from jali.core.text import Html, element, joined
from jali.errors import InputError, JaliError
from jali.studio.session import Session
from jali.studio.views import BY_NAME, VIEWS
from jali.studio.views.view import Action, acting, amount, head, narrowed, page_part

STATIC = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
SHARED = ("style.css", "script.js")
"""Files of the report: its style, and the script that searches and sorts long tables."""
LISTED = 1000
"""Tables that are listed to choose from; a field takes the name of any other."""


def application(session: Session) -> Starlette:
    """The routes of a session, without the guard."""

    async def shell(request: Request) -> Response:
        return HTMLResponse(_shell())

    async def static(request: Request) -> Response:
        return _static(request.path_params["name"])

    async def state(request: Request) -> Response:
        return JSONResponse(session.to_dict())

    async def view(request: Request) -> Response:
        name = request.path_params["name"]
        if session.state is None:
            return HTMLResponse(await run_in_threadpool(_choosing, session))
        if name not in BY_NAME:
            return PlainTextResponse("no such view", status_code=404)
        try:
            html = await run_in_threadpool(BY_NAME[name].render, session, request.query_params)
        except JaliError as problem:
            html = element("div", element("p", problem), class_="problem", role="alert")
        return HTMLResponse(joined([html, _next(name)]))

    async def act(request: Request) -> Response:
        arguments = await _arguments(request)
        try:
            doing = _action(session, request.path_params["name"], request.path_params["action"])
            told = await run_in_threadpool(_called, doing, arguments, session.acting)
        except JaliError as problem:
            return JSONResponse({"error": str(problem)}, status_code=422)
        return JSONResponse({"told": told, "version": session.version})

    async def events(request: Request) -> Response:
        async def lines() -> AsyncIterator[bytes]:
            async for news in session.news():
                yield f"data: {json.dumps(news)}\n\n".encode()

        return StreamingResponse(lines(), media_type="text/event-stream")

    return Starlette(routes=[
        Route("/", shell),
        Route("/static/{name}", static),
        Route("/api/state", state),
        Route("/api/events", events),
        Route("/api/views/{name}", view),
        Route("/api/act/{name}/{action}", act, methods=["POST"]),
    ])  # fmt: skip


async def _arguments(request: Request) -> dict[str, Any]:
    """The arguments of an action; {} where the body is none."""
    body = await request.body()
    try:
        given = json.loads(body) if body else {}
        json.dumps(given, ensure_ascii=False).encode()  # halves of characters are no text: they cannot be answered
    except (ValueError, RecursionError):
        given = None
    return given if isinstance(given, dict) else {"": None}


def _action(session: Session, name: str, action: str) -> Any:
    """An action of every view, or of this one."""
    view = BY_NAME.get(name)
    known = {**(view.actions if view is not None else {}), **COMMON}
    if action not in known:
        raise InputError("the page asked for something that the studio does not know", do="reload the page")
    return partial(known[action], session)


_TYPES: dict[str, type] = {"str": str, "bool": bool, "int": int, "list": list, "dict": dict, "None": type(None)}


def _called(doing: Any, arguments: Mapping[str, Any], acting: AbstractContextManager[Any]) -> Any:
    """Call an action whose arguments have the names and plain types that its signature says.

    Actions come one after the other, since each makes a job from the one before; stopping waits for none of them.
    """
    known = inspect.signature(doing)
    try:
        given = known.bind(**arguments).arguments
        for name, value in given.items():
            wanted = [one.partition("[")[0] for one in str(known.parameters[name].annotation).split(" | ")]
            if all(one in _TYPES for one in wanted) and type(value) not in [_TYPES[one] for one in wanted]:
                raise TypeError
    except TypeError:
        raise InputError("the page sent something that the studio does not know", do="reload the page") from None
    with nullcontext() if doing.func is _stop else acting:
        return doing(**arguments)


def _step(session: Session, *, by: int = 0, at: int | None = None) -> None:
    session.step(by, at=at)


def _again(session: Session, *, number: int) -> None:
    run = session.runs.get(number)
    if run is not None:
        task, arguments = json.loads(run.key)
        session.again(task, **arguments)


def _stop(session: Session, *, number: int) -> None:
    session.stop(number)


def _open(session: Session, *, path: str) -> None:
    session.open(session.folder.inside(path))


COMMON: dict[str, Action] = {"step": _step, "again": _again, "stop": _stop, "open": _open}


# -- pages without data ----------------------------------------------------------------------------------------------


def _static(name: str) -> Response:
    """A file of ours: the studio's own, or one that it shares with the report."""
    kind = STATIC.get(os.path.splitext(name)[1])
    folder = files("jali.core").joinpath("templates") if name in SHARED else files("jali.studio").joinpath("static")
    known = {one.name: one for one in folder.iterdir() if one.is_file()}
    if kind is None or name not in known:
        return PlainTextResponse("no such file", status_code=404)
    return Response(known[name].read_bytes(), media_type=kind)


def _shell() -> str:
    """The frame of the page, which holds nothing of the table."""
    steps = [
        element("li", element("a", element("span", str(at), class_="number", aria_hidden="true"), view.title,
                              href=f"#{view.name}", data_script=view.script))
        for at, view in enumerate(VIEWS, 1)
    ]  # fmt: skip
    tools = element(
        "div",
        element("button", "↶ Undo", type="button", id="undo", class_="button plain", disabled=""),
        element("button", "↷ Redo", type="button", id="redo", class_="button plain", disabled=""),
        element("details", element("summary", "History"), element("ol", id="history"), id="steps", class_="menu"),
        class_="tools",
    )  # fmt: skip
    top = element(
        "header", element("p", element("strong", "jali"), " studio", class_="brand"),
        element("p", id="table", class_="table"), tools, class_="top",
    )  # fmt: skip
    private = element("p", "Confidential: all of it uses the original table. It stays on this machine.",
                      class_="confidential")  # fmt: skip
    progress = element(
        "section", element("span", id="doing"), element("progress", id="done", max="1", aria_labelledby="doing"),
        element("button", "Stop", type="button", id="stop", class_="button"), id="progress", hidden="",
        aria_label="Work in progress",
    )  # fmt: skip
    body = joined([
        element("a", "To the content", href="#view", class_="skip", id="skip"), top,
        element("div", element("nav", element("ol", *steps), private, aria_label="Steps", class_="steps"),
                element("main", element("noscript", "The studio needs JavaScript, its own and nothing else."),
                        id="view", tabindex="-1"), class_="frame"),
        element("div", id="message", role="alert", hidden=""),
        element("p", id="status", role="status", class_="unseen"),
        progress,
    ])  # fmt: skip
    head_ = joined([
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", "jali studio"),
        element("link", rel="icon", href="/static/icon.svg", type="image/svg+xml"),
        element("link", rel="stylesheet", href="/static/style.css"),
        element("link", rel="stylesheet", href="/static/studio.css"),
        element("script", type="module", src="/static/script.js"),
        element("script", type="module", src="/static/shell.js"),
    ])  # fmt: skip
    page = element("html", element("head", head_), element("body", body, class_="studio"), lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


def _next(name: str) -> Html:
    """The way to the step after a view."""
    names = [view.name for view in VIEWS]
    after = VIEWS[names.index(name) + 1 :][:1]
    links = [element("a", f"Next: {view.title} →", href=f"#{view.name}", id="next", class_="button") for view in after]
    return element("p", *links, class_="next") if links else Html("")


def _choosing(session: Session) -> Html:
    """The page that asks for a table: a list that can be narrowed, by keyboard too, and a field for any name."""
    found = session.folder.tables()
    items = [_file(session, name) for name in found[:LISTED]]
    more = f" {len(found) - LISTED:,} more are not listed: write the name of one below." if len(found) > LISTED else ""
    lead = f"Tables and jobs below {session.folder.root}.{more}"
    narrow = narrowed("Search these files", "files", len(items), id_="search-files", chosen=True)
    none = element("p", "There are none: start jali studio in the folder of a table, or write its name below.")
    listed = element("ul", *items, id="files", class_="files") if items else none
    named = element("input", type="text", name="path", id="path", autocomplete="off")
    form = element(
        "form", element("label", element("span", "Or its name", class_="label"), named, class_="entry"),
        element("p", element("button", "Open", type="submit", class_="button first")), **acting("open"),
    )  # fmt: skip
    return page_part(joined([head("Open a table", lead), *([narrow] if items else []), listed, form]))


def _file(session: Session, name: str) -> Html:
    """A file of the list: its name, folder, size and day."""
    folder, _, own = name.rpartition("/")
    parts = [element("b", own), element("span", folder, class_="quiet")]
    try:
        seen = (session.folder.root / name).stat()
        day = datetime.fromtimestamp(seen.st_mtime, UTC).astimezone()
        parts += [element("span", text, class_="n") for text in (amount(seen.st_size), f"{day:%Y-%m-%d %H:%M}")]
    except OSError:
        parts.append(element("span", "cannot be read", class_="quiet"))
    press = element("button", *parts, type="button", **acting("open", path=name))
    return element("li", press, data_text=name.lower())


# -- the server ------------------------------------------------------------------------------------------------------

LOOPBACK = "127.0.0.1"
LOOKS = 1.0
"""Seconds between two looks at whether anybody is there."""


def require_studio() -> None:
    """Raise InputError where the packages of the studio are not installed."""
    from importlib.util import find_spec

    missing = [name for name in ("starlette", "uvicorn", "matplotlib") if find_spec(name) is None]
    if missing:
        what = f"the studio needs {', '.join(missing)}, which is not installed"
        raise InputError(what, do='pip install "jali[studio]"')


def serve(
    root: Path, data: Path | None, *, first_job: Callable[[Any, str, str], str], port: int = 0,
    announce: Callable[[str], None], opened: Callable[[str], None] | None = None, stop_after: float | None = None,
) -> None:  # fmt: skip
    """Run the studio until it is stopped; `announce` is told each address, `opened` the first one.

    Only files below `root` are read or written. `stop_after` minutes without a page it stops by itself.
    """
    require_studio()
    from jali.studio.guard import Folder
    from jali.studio.session import Session
    from jali.studio.views import LANES

    session = Session(Folder(root), first_job, LANES)
    try:
        if data is not None:
            session.open(data)
        with _listening(port) as listening:
            asyncio.run(_run(session, listening, announce, opened, stop_after))
    finally:
        session.close()


def _listening(port: int) -> socket.socket:
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((LOOPBACK, port))
        found.listen(128)
    except (OSError, OverflowError) as problem:
        found.close()
        why = getattr(problem, "strerror", None) or "no such port"
        raise InputError(f"cannot listen on port {port}", got=why, do="choose another one, or 0 for any") from None
    return found


async def _run(
    session: Any, listening: socket.socket, announce: Callable[[str], None], opened: Callable[[str], None] | None,
    stop_after: float | None,
) -> None:  # fmt: skip
    import uvicorn

    from jali.studio.app import application
    from jali.studio.guard import Guard, Keys

    port = listening.getsockname()[1]
    keys = Keys()

    def address(token: str) -> str:
        return f"http://{LOOPBACK}:{port}/?token={token}"

    guard = Guard(application(session), keys=keys, port=port, invited=lambda token: announce(address(token)))
    server = uvicorn.Server(uvicorn.Config(
        guard, log_level="critical", access_log=False, lifespan="off", server_header=False, date_header=False,
        timeout_graceful_shutdown=1, timeout_keep_alive=5, h11_max_incomplete_event_size=64 << 10,
        http="h11", ws="none",
    ))  # fmt: skip
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign,assignment]

    def stop() -> None:
        session.stopping.set()
        server.should_exit = True

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
            loop.add_signal_handler(number, stop)
    first = address(keys.invite())
    announce(first)
    watching = asyncio.create_task(_watch(session, guard, stop, stop_after))
    if opened is not None:
        loop.run_in_executor(None, opened, first)
    try:
        await server.serve(sockets=[listening])
    finally:
        watching.cancel()


async def _watch(session: Any, guard: Any, stop: Callable[[], None], stop_after: float | None) -> None:
    """Stop when no page was there for so many minutes and nothing is being made."""
    while stop_after is not None:
        await asyncio.sleep(min(LOOKS, stop_after * 60))
        if session.listeners or any(run.status == "running" for run in session.runs.values()):
            guard.last = time.monotonic()
        elif time.monotonic() - guard.last > stop_after * 60:
            stop()
            return
