"""Where a table lies that is no file to be read: in a database, at a URL, in a folder or bucket of Parquet files."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeGuard, cast
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from jali.errors import InputError, nearest, path_of

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset

if TYPE_CHECKING or sys.platform != "win32":
    from pathlib import PosixPath as _Path
else:
    from pathlib import WindowsPath as _Path

Scheme = Literal["postgresql", "sqlite", "duckdb", "parquet"]
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_DATABASES: dict[str, Scheme] = {
    "postgresql": "postgresql", "postgres": "postgresql", "sqlite": "sqlite", "duckdb": "duckdb",
}  # fmt: skip
_BUCKETS = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "file")
_OF_FILES: dict[str, Scheme] = {
    ".sqlite": "sqlite", ".sqlite3": "sqlite", ".db": "sqlite", ".duckdb": "duckdb", ".ddb": "duckdb",
}  # fmt: skip
_CLIENT = (
    "sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "connect_timeout", "application_name", "service", "host",
    "port", "target_session_attrs", "gssencmode", "channel_binding",
)  # fmt: skip
_SECRET = re.compile(r"pass|secret|token|key_id|access_key|credential", re.IGNORECASE)
_TOLD = re.compile(rf"({_SECRET.pattern})[\w-]*\s*=", re.IGNORECASE)  # one that has a value
_LOGIN = re.compile(r":[^@]*@")  # user:password@host, whatever stands in the password
_PATH = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")  # what a path makes of an address
NO_PASSWORD = "set PGPASSWORD, or use the password file of the database's own clients"


class Address(_Path):
    """A URL where a path can stand: a path would lose one of its slashes. What is derived from it is a mere path."""

    _text: str = ""

    @classmethod
    def of(cls, text: str) -> Address:
        """The address that a text is."""
        made = cls(text)
        made._text = text
        return made

    def __str__(self) -> str:
        return self._text or super().__str__()

    def __fspath__(self) -> str:
        return str(self)


def place_of(text: str) -> Path:
    """A path, or the address that a text is."""
    return Address.of(text) if is_address(text) else Path(text)


def is_address(text: object) -> bool:
    """Whether a text is a URL.

    >>> is_address("postgresql://host/db?table=patients"), is_address("a/b.csv"), is_address("C:/x.csv")
    (True, False, False)
    """
    return isinstance(text, (str, Address)) and _URL.match(str(text)) is not None


def is_dataset(given: object) -> TypeGuard[Dataset]:
    """Whether this is an Arrow dataset; whoever has one has loaded its module, which takes a while."""
    module = sys.modules.get("pyarrow.dataset")
    return module is not None and isinstance(given, module.Dataset)


@dataclass(frozen=True)
class Location:
    """Where tables lie, and the name of one of them, if it was said."""

    scheme: Scheme
    place: str  # a file, a folder or glob, a URL of such; the name of a database on a server
    table: str | None = None
    client: Mapping[str, str] = field(default_factory=dict)  # what the client of a server is told; never a password

    @property
    def shown(self) -> str:
        """How messages call it."""
        if self.scheme != "postgresql":
            return self.place
        return f"postgresql://{self.client.get('host', '')}/{self.place}"

    @property
    def address(self) -> Address:
        """All of it as one text, with which `located` finds it again."""
        table = "" if self.table is None else f"table={quote(self.table, safe='')}"
        if self.scheme == "postgresql":
            user = f"{quote(self.client['user'], safe='')}@" if "user" in self.client else ""
            own = "" if "/" in (host := self.client.get("host", "")) else host
            port = f":{self.client['port']}" if own and "port" in self.client else ""
            left = {k: v for k, v in self.client.items() if k != "user" and not (own and k in ("host", "port"))}
            more = [table, *(f"{key}={quote(value, safe='')}" for key, value in left.items())]
            return Address.of(
                f"postgresql://{user}{own}{port}/{quote(self.place, safe='')}?{'&'.join(filter(None, more))}"
            )
        return Address.of(f"{self.scheme}:///{quote(str(Path(self.place).absolute()))}?{table}".rstrip("?"))

    def require_table(self) -> str:
        """The name of the table that is written; an InputError where none was said."""
        if not self.table:
            raise InputError(f"no table of {self.shown} was named", do='add "?table=NAME" to the address')
        return self.table


def located(given: object, table: str | None = None) -> Location | None:
    """Where the tables of a URL, a database file, a folder or a glob lie; None for a file that is read as one."""
    if not isinstance(given, (str, Path)):
        return None
    if is_address(given):
        found = _of_url(str(given))
        return found if table is None else Location(found.scheme, found.place, table, found.client)
    _refuse_lost(str(given))
    text, named = _named(str(given))
    scheme = _scheme(text)
    if scheme is None:
        if (table is not None or named is not None) and Path(text).suffix.lower() in _OF_FILES:
            raise _no_database(text) if os.path.exists(text) else no_file(text)
        if table is not None:
            raise InputError(f"table= is for databases; {given} is none", do="leave it out")
        return None
    return Location(scheme, text, table or named)


def _named(text: str) -> tuple[str, str | None]:
    """The path of a database file, and the table in "clinic.duckdb?table=patients"."""
    path, mark, query = text.rpartition("?table=")
    return (path, unquote(query)) if mark and Path(path).suffix.lower() in _OF_FILES else (text, None)


def _scheme(text: str) -> Scheme | None:
    path = path_of(text)
    if os.path.isdir(path):  # False for a name that is too long, where Path raises
        return None if (path / "manifest.json").is_file() else "parquet"
    if os.path.isfile(path):
        return _by_content(path)
    if any(letter in text for letter in "*?[") and path.suffix.lower() in (".parquet", ".pq"):
        return "parquet"
    return None


def _by_content(path: Path) -> Scheme | None:
    """The database that a file is, by how it begins; a pipe is none, and nobody waits for it."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            head = file.read(16)
    except PermissionError:
        raise InputError(f"no permission to read {path}", do="ask for it, or copy the file") from None
    except OSError:
        return None
    return "sqlite" if head == b"SQLite format 3\0" else "duckdb" if head[8:12] == b"DUCK" else None


def no_file(text: str) -> InputError:
    """What to say of a file that is not there."""
    return InputError(f"no file {text}", do="check the path")


def _no_database(text: str) -> InputError:
    """What to say of what was meant to be a database."""
    known = ", ".join(sorted(_OF_FILES))
    return InputError(f"{text} is no database", do=f"name an SQLite or DuckDB file ({known}) or a URL")


def target_of(given: object) -> Location | None:
    """Where a release is written in a database; None for a folder."""
    if not isinstance(given, (str, Path)):
        return None
    if is_address(given):
        found = _of_url(str(given))
        if found.scheme == "parquet":
            raise InputError("releases are written into folders and databases", do="write it here, and copy the folder")
        return found
    _refuse_lost(str(given))
    text, named = _named(str(given))
    scheme = _by_content(Path(text)) if os.path.exists(text) else _OF_FILES.get(Path(text).suffix.lower())
    if scheme is None and named is not None:  # a folder of this name would be no help to anybody
        raise _no_database(text)
    return None if scheme is None else Location(scheme, text, named)


def of_job(given: str | Mapping[str, Any], folder: Path) -> Path:
    """What a job says of a database, { database = "…", table = "…" }, as an address; files beside the job."""
    if isinstance(given, str):
        return place_of(given)
    for key in given:
        if _SECRET.search(key):
            raise InputError("a job must not hold a password", do=NO_PASSWORD)
        if key not in ("database", "table"):
            raise InputError(f'unknown key "{key}" beside database and table', do=nearest(key, ("database", "table")))
    if not all(isinstance(given.get(key), str) and given[key] for key in ("database", "table")):
        raise InputError("a database and one of its tables are texts", do='write { database = "…", table = "…" }')
    database, table = str(given["database"]), str(given["table"])
    if is_address(database):
        found = _of_url(database)
        return Location(found.scheme, found.place, table, found.client).address
    path = folder / path_of(database).expanduser()
    scheme = _by_content(path) if path.exists() else _OF_FILES.get(path.suffix.lower())
    if scheme is None:
        raise _no_database(database)
    return Location(scheme, str(path), table).address


def _refuse_secret(scheme: str, rest: str) -> None:
    """Raise InputError where an address holds a password, before anything of it is shown."""
    if _LOGIN.search(rest) or _TOLD.search(rest) or _TOLD.search(unquote(rest)):
        own = "use the credentials of your machine" if scheme in _BUCKETS else NO_PASSWORD
        raise InputError("an address must not hold a password", do=f'{own}; in names "@" is written %40')


def _refuse_lost(text: str) -> None:
    """Raise InputError where a path was an address with a user or a password."""
    lost = _PATH.match(text)
    if lost is not None:
        rest = text[lost.end() :]
        _refuse_secret(lost[1].lower(), f":{rest}" if "@" in rest else rest)


def _of_url(text: str) -> Location:
    found = cast(re.Match[str], _URL.match(text))
    scheme = found[1].lower()
    _refuse_secret(scheme, text[found.end() :])
    if scheme in _BUCKETS:
        return Location("parquet", text)
    if scheme not in _DATABASES:
        known = (*_DATABASES, *_BUCKETS)
        do = f"{nearest(scheme, known)}; tables that Ibis reads go through jali.table(ibis_table)"
        raise InputError(f'no address of the kind "{scheme}://"', do=do)
    try:
        parts = urlsplit(text)
        port, query = parts.port, parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        raise InputError("the address of the database is damaged", do="e.g. postgresql://host/db?table=t") from None
    options = dict(query)
    table = options.pop("table", None) or None
    if _DATABASES[scheme] != "postgresql":
        if options or parts.netloc:
            raise InputError(f"the address of a {scheme} file is {scheme}:///path/to/file?table=t", do="write it so")
        return Location(_DATABASES[scheme], _file(parts.path), table)
    for key in options:
        if key not in _CLIENT:
            raise InputError(f'no option "{key}" in the address of a database', do=nearest(key, ("table", *_CLIENT)))
    client = {"host": unquote(parts.hostname or ""), "port": str(port or ""), "user": unquote(parts.username or "")}
    client = {key: value for key, value in client.items() if value} | options
    place = unquote(parts.path.lstrip("/"))
    if any(sign in text for sign in ("@", "=", "://") for text in (place, client.get("host", ""))):  # libpq reads them
        do = "e.g. postgresql://host/db?table=t"
        raise InputError('"@", "=" and "://" are in no name of a database or host', do=do)
    return Location("postgresql", place, table, client)


def _file(path: str) -> str:
    """The file of sqlite:///relative or sqlite:////absolute; where there is no such folder here, three will do."""
    own = unquote(path)
    relative = own[1:]
    return relative if relative.startswith("/") or Path(relative).parent.is_dir() else own
