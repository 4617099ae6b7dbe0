"""The text of a condition: `parse` reads what `to_text` prints.

condition   comparison | NOT condition | condition AND condition | condition OR condition
            | ( condition ) | TRUE | FALSE
comparison  column OP literal | literal OP column        OP: = == != <> < <= > >=
            | column [NOT] BETWEEN literal AND literal | column [NOT] IN (literal, ...)
            | column [NOT] LIKE 'pattern'              | column IS [NOT] NULL
column      name | "any name at all"
literal     30 | -1.5e3 | 'text' | TRUE | FALSE
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from jali.errors import InputError
from jali.query import tree
from jali.query.tree import And, Condition, Constant, Not, Op, Or, Scalar, Test, column_text, literal_text, shown

MAX_DEPTH = 100  # of parentheses and NOTs: three Python frames each stay far from the recursion limit

# Text to tokens.

_TOKEN = re.compile(
    r"""(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?P<word>(?:[A-Za-z_]|[^\x00-\x7F\s])(?:[A-Za-z0-9_]|[^\x00-\x7F\s])*)
      | (?P<quoted>"[^"]*+(?:""[^"]*+)*+")
      | (?P<string>'[^']*+(?:''[^']*+)*+')
      | (?P<op><=|>=|<>|!=|==|=|<|>)
      | (?P<mark>[(),+-])""",
    re.VERBOSE,
)
_HINTS = {
    "“”„«»‘’‚": "write straight quotes: 'text', \"column\"",
    "≤": "write <=",
    "≥": "write >=",
    "≠!": "write != between values and NOT before a condition",
    "&": "write AND",
    "|": "write OR",
    ";": "write one condition, without a semicolon",
    "*/%": "write the result itself: there is no arithmetic",
}


class _Token(NamedTuple):
    kind: str  # number, word, quoted, string, op, mark, key or end
    text: str
    at: int


def _fail(at: int, what: str, got: str | None = None, do: str | None = None) -> NoReturn:
    raise InputError(f"condition, at position {at + 1}: {what}", got=None if got is None else shown(got), do=do)


def _strange(text: str, at: int) -> NoReturn:
    other = 'write a column name that has more than letters, digits and _ in double quotes, as "a b"'
    if text[at] in "\"'":
        _fail(at, "a quote that is never closed", text[at:], "close it, and write a quote inside quotes twice")
    do = next((hint for signs, hint in _HINTS.items() if text[at] in signs), other)
    _fail(at, "a sign that has no meaning here", text[at], do)


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        token = _TOKEN.match(text, at)
        if token is None or token.lastgroup is None:
            _strange(text, at)
        kind, word = token.lastgroup, token.group()
        if kind == "word" and not word.isidentifier():
            _strange(text, at + next((i for i, sign in enumerate(word) if not ("a" + sign).isidentifier()), 0))
        if kind == "word" and word.upper() in tree.KEYWORDS:
            kind, word = "key", word.upper()
        at = token.end()
        if kind == "number" and at < len(text) and ("a" + text[at]).isidentifier():
            do = "leave a space, or write a column name that starts with a digit in double quotes"
            _fail(token.start(), "a number runs into a word", text[token.start() : at + 12], do)
        yield _Token(kind, word, token.start())
    yield _Token("end", "the end", len(text))


# Tokens to a tree.

_OPERATORS: dict[str, Op] = {"=": "=", "==": "=", "!=": "=", "<>": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def parse(text: str) -> Condition:
    """The condition that the text spells, just as written; any mistake is an InputError with its position.

    >>> parse("age BETWEEN 20 AND 30")
    And(parts=(Test(column='age', op='>=', value=20), Test(column='age', op='<=', value=30)))
    """
    if not isinstance(text, str):
        raise InputError("condition: not a text", got=type(text).__name__, do="write it as in 'age > 30'")
    reader = _Reader(text)
    if reader.now.kind == "end":
        _fail(0, "the condition is empty", do="write one, as in age > 30, or TRUE for everybody")
    condition = reader.either(0)
    if reader.now.kind != "end":
        reader.leftover()
    return condition


class _Reader:
    """Reads the tokens from left to right, with a method for each line of the grammar."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, self.index = text, list(_tokens(text)), 0

    @property
    def now(self) -> _Token:
        return self.tokens[self.index]

    def advance(self) -> _Token:
        token = self.now
        self.index += token.kind != "end"
        return token

    def take(self, *texts: str) -> str | None:
        """The next token's text if it is one of these, and then it is behind us."""
        return self.advance().text if self.now.text in texts and self.now.kind != "end" else None

    def expect(self, text: str, do: str) -> None:
        if not self.take(text):
            _fail(self.now.at, f"{text} is missing", self.now.text, do)

    def either(self, depth: int) -> Condition:
        parts = [self.both(depth)]
        while self.take("OR"):
            parts.append(self.both(depth))
        return Or(tuple(parts)) if len(parts) > 1 else parts[0]

    def both(self, depth: int) -> Condition:
        parts = [self.single(depth)]
        while self.take("AND"):
            parts.append(self.single(depth))
        return And(tuple(parts)) if len(parts) > 1 else parts[0]

    def single(self, depth: int) -> Condition:
        negations, start = 0, self.now.at
        while self.take("NOT"):
            negations += 1
        inside = self.take("(") is not None
        if depth + negations + inside > MAX_DEPTH:
            _fail(start, f"more than {MAX_DEPTH} parentheses or NOTs inside each other", do="write it flatter")
        condition = self.either(depth + negations + 1) if inside else self.comparison()
        if inside:
            self.expect(")", "close the parenthesis, or join conditions with AND or OR")
        for _ in range(negations):
            condition = Not(condition)
        return condition

    def comparison(self) -> Condition:
        start = self.now
        column = self.column() if start.kind in ("word", "quoted") else None
        if column is not None:
            condition = self.predicate(column, start)
        elif start.kind in ("number", "string") or start.text in ("TRUE", "FALSE", "+", "-"):
            condition, column = self.mirrored(start)
        else:
            do = "write one, as in age > 30; a column whose name is a keyword stands in double quotes"
            _fail(start.at, "a condition is missing", start.text, do)
        if self.now.kind == "op":
            left, name = shown(self.text[start.at : self.now.at]), shown(column_text(column or "column"))
            do = f"write {left} AND {name} {shown(self.text[self.now.at :])}, or {name} BETWEEN low AND high"
            _fail(self.now.at, "comparisons cannot be chained", self.text[start.at :], do)
        return condition

    def mirrored(self, start: _Token) -> tuple[Condition, str | None]:
        """A literal on the left: 30 <= age says age >= 30."""
        value, op = self.literal(), self.take(*_OPERATORS)
        if op is None and isinstance(value, bool):
            return Constant(value), None
        if op is None:
            do = "compare a column with it, as in age > 30"
            _fail(start.at, "a value alone is no condition", self.text[start.at : self.now.at], do)
        if self.now.kind not in ("word", "quoted"):
            _fail(self.now.at, "one side must be a column", self.now.text, "write it as in age > 30 or 30 < age")
        column = self.column()
        return self.compared(column, _FLIPPED.get(op, op), value, start.at), column

    def compared(self, column: str, op: str, value: Scalar, at: int) -> Condition:
        if isinstance(value, bool) and _OPERATORS[op] != "=":
            _fail(at, "TRUE and FALSE have no order", op, "compare with = or !=")
        test = Test(column, _OPERATORS[op], value)
        return Not(test) if op in ("!=", "<>") else test

    def column(self) -> str:
        token = self.advance()
        if token.kind == "quoted":
            if len(token.text) == 2:
                _fail(token.at, "a column without a name", token.text, "write its name; an empty text is ''")
            return token.text[1:-1].replace('""', '"')
        if self.now.text in ("+", "-"):
            whole = re.compile(r"[\w+-]+").match(self.text, token.at)
            if whole is None or whole.end() <= self.now.at:
                do = 'compare the column itself; a name with a hyphen stands in double quotes, as "a-b"'
                _fail(self.now.at, "there is no arithmetic", self.now.text, do)
            do = f'write "{shown(whole.group())}" in double quotes'
            _fail(token.at, "a bare column name cannot hold a hyphen", whole.group(), do)
        return token.text

    def predicate(self, column: str, start: _Token) -> Condition:
        negated, at = self.take("NOT") is not None, self.now.at
        if self.take("BETWEEN"):
            low = self.compared(column, ">=", self.literal(), at)
            self.expect("AND", "write BETWEEN low AND high")
            condition: Condition = And((low, self.compared(column, "<=", self.literal(), at)))
        elif self.take("IN"):
            condition = Test(column, "in", self.members())
        elif self.take("LIKE"):
            pattern = self.literal()
            if not isinstance(pattern, str):
                _fail(at, "LIKE needs a pattern", self.text[at : self.now.at], "write it as in LIKE 'a%'")
            condition = Test(column, "like", pattern)
        elif not negated and self.take("IS"):
            negated = self.take("NOT") is not None
            self.expect("NULL", "after IS comes NULL or NOT NULL; write = TRUE for truth values")
            condition = Test(column, "null", None)
        elif not negated and (op := self.take(*_OPERATORS)):
            condition = self.compared(column, op, self.literal(), at)
        else:
            self.no_comparison(start, column, negated)
        return Not(condition) if negated else condition

    def members(self) -> frozenset[Scalar]:
        start = self.now.at
        self.expect("(", "write the values in parentheses, as in IN ('a', 'b')")
        literals = [self.literal()]
        while self.take(","):
            literals.append(self.literal())
        self.expect(")", "separate the values with commas and close the parenthesis")
        if tree.mixed(literals):
            _fail(start, "IN mixes numbers with TRUE or FALSE", do="use one kind of value")
        return frozenset(literals)

    def literal(self) -> Scalar:
        token = self.advance()
        if token.kind == "string":
            return token.text[1:-1].replace("''", "'")
        if token.kind == "number" or (token.text in ("+", "-") and self.now.kind == "number"):
            text = token.text if token.kind == "number" else token.text + self.advance().text
            number = tree.number_from(text)
            if number is None:
                _fail(token.at, "a number of too many digits", text, "write one below 1e300 in at most 400 digits")
            return number
        if token.text in ("TRUE", "FALSE"):
            return token.text == "TRUE"
        self.no_literal(token)

    # What to say when it goes wrong.

    def no_literal(self, token: _Token) -> NoReturn:
        bare = token.text[1:-1].replace('""', '"') if token.kind == "quoted" else token.text
        if token.kind in ("word", "quoted"):
            text = shown(literal_text(bare))
            do = f"write text in single quotes, as {text}; double quotes and bare words name columns"
            _fail(token.at, "a column stands where a value should", token.text, do)
        if token.text == "NULL":
            _fail(token.at, "nothing equals NULL", token.text, "write column IS NULL or column IS NOT NULL")
        if token.kind == "op":
            _fail(token.at, "a second operator", token.text, "use one of = != < <= > >=")
        _fail(token.at, "a value is missing", token.text, "write a number, a text in single quotes, TRUE or FALSE")

    def no_comparison(self, start: _Token, column: str, negated: bool) -> NoReturn:
        name = shown(column_text(column))
        do = f"write it as in {name} > 30, or {name} = TRUE for truth values"
        if negated:
            do = "after NOT comes BETWEEN, IN or LIKE here"
        elif start.kind == self.now.kind == "word":
            whole = self.text[start.at : self.now.at + len(self.now.text)]
            do = f'write a column name with a space in double quotes, as "{shown(whole)}"'
        _fail(self.now.at, f"a comparison is missing after column {name}", self.now.text, do)

    def leftover(self) -> NoReturn:
        hints = {
            "+": "write the result itself, there is no arithmetic; a date is a text, as '2020-05-01'",
            ",": "write numbers without commas, and decimals with a point: 1.5",
            ")": "remove it, or open a parenthesis before",
        }
        do = hints.get(self.now.text.replace("-", "+"), "join conditions with AND or OR")
        _fail(self.now.at, "the condition ended before this", self.now.text, do)
