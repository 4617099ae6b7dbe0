"""Identifiers: what tells that a column names people, what a caller says of it, and keyed pseudonyms in its place."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jali.core.files import put_content
from jali.encoding import values as v
from jali.errors import InputError, nearest, path_of, told

Class = Literal[
    "e-mail", "phone", "social-security number", "IBAN", "IP address", "coordinate", "address", "record number", "name",
    "free text", "close to unique",
]  # fmt: skip
PEOPLE = 100
"""From this number of people on, values that hardly anybody shares are close to unique."""
DISTINCT = 0.9
"""More distinct values than this share of the people are close to unique."""
RARE = 0.5
"""Codes of one shape are close to unique where there are more of them than this share of the people."""
MANY = 100_000
"""This number of values that are close to unique are refused as such: what else they look like would take seconds."""
MOST = 0.5
"""A form of values that also occurs by chance must be that of this share of the distinct values."""


class Suspicion(NamedTuple):
    """What a column seems to be, and what gave that away; never a value of it."""

    kind: Class
    reason: str


_SHARED = "hh hhid family famille familia famiglia menage foyer hogar gezin plate kennzeichen vin"


def is_of_several(name: str) -> bool:
    """Whether a number is that of a household, family or vehicle by its name, so that the people of its rows differ."""
    shared, begins = _SHARED.split(), ("haushalt", "familie", "household")
    return any(word in shared or word.startswith(begins) for word in words_of(name))


def tells_apart(distinct: int, people: int) -> bool:
    """Whether so many different values tell nearly everybody apart."""
    return people >= PEOPLE and distinct > DISTINCT * people


def suspicion(name: str, values: pa.Array, people: int) -> Suspicion | None:
    """What a column seems to name people by; None where nothing tells that it does.

    `values` are its distinct values that occur, of their kind; `people` is the number of people who have one. A name
    counts only where the values can be what it says: two values of ten people are a flag, whatever they are called,
    unless one of them is an e-mail address or an IBAN.
    """
    known = values.drop_null()
    kind = v.kind_of(known)
    if kind == "boolean" or len(known) == 0:
        return None
    if len(known) <= 2 and people >= 10:
        return _named_by_one(known) if kind == "text" else None
    named = named_like(name)
    if named is not None and _can_be(named, kind, v.texts(known)):
        return Suspicion(named, f"its name is that of {_AN[named]}")
    unique = None
    if tells_apart(len(known), people):
        unique = Suspicion("close to unique", f"more than {DISTINCT:.0%} of its values are distinct")
    formed = _formed_like(known, people) if kind == "text" and (unique is None or len(known) < MANY) else None
    if formed is not None or unique is not None:
        return formed or unique
    if kind != "date" and people >= PEOPLE and len(known) > RARE * people and _one_shape(v.texts(known), kind):
        return Suspicion("close to unique", "its values are codes of one shape that few people share")
    return None


# -- names of columns ----------------------------------------------------------------------------------------------

_AN: dict[Class, str] = {
    "e-mail": "an e-mail address", "phone": "a phone number", "social-security number": "a social-security number",
    "IBAN": "a bank account", "IP address": "an IP address", "coordinate": "a coordinate", "address": "an address",
    "record number": "a record number", "name": "a person's name", "free text": "free text",
}  # fmt: skip
_PERSON = (
    "patient person customer client user employee student member subject participant respondent victim insured "
    "mother father parent spouse child contact kunde kunden patienten personen versicherten mitarbeiter schueler "
    "paciente persona cliente usuario empleado alumno personne usager salarie eleve beneficiaire assure paziente "
    "persoon klant"
)
_NUMBER = "id nr no num number nummer numero code key pk identifier kennung identifiant identificador"
# A rule is words that must all stand in the name, and with "=" nothing but them; "a|b" is either. The words are those
# of English, German, French and Spanish, some of Italian, Portuguese and Dutch; accents and case do not count.
_RULES: tuple[tuple[Class, str], ...] = (
    ("e-mail", "email|emails|mail|courriel|correo|emailadresse|mailadresse; posta elettronica"),
    (
        "IP address",
        "=ip; =ip address|addr|adresse|adress|direccion; ipaddress|ipaddr|ipadresse|macaddress; =mac address",
    ),
    (
        "phone",
        "phone|telephone|tel|telefon|telefono|telefone|telefoon|fax|telefonnummer|telefonnr|rufnummer|handy|handynummer|"
        "mobilnummer|mobiltelefon|movil|celular|cellulare|cellphone|whatsapp; =mobile|mobil|portable; "
        f"mobile|portable|cell {_NUMBER.replace(' ', '|')}",
    ),
    (
        "social-security number",
        "ssn|nino|dni|nif|nie|nss|curp|cpf|bsn|pesel|insee|nir|personnummer|svnr|steuernummer|steuerid|"
        "sozialversicherungsnummer|rentenversicherungsnummer|versichertennummer|krankenversicherungsnummer|"
        "krankenkassennummer; carte vitale; tessera sanitaria; partita iva; "
        "social security; national insurance; securite sociale; num|numero secu; seguridad social; codice fiscale; "
        f"sv|steuer|sozialversicherungs|versicherten|tax|national {_NUMBER.replace(' ', '|')}",
    ),
    (
        "IBAN",
        "iban|kontonummer|kontonr|bankverbindung|rib; bank account; cuenta bancaria; compte bancaire; "
        f"account|konto|compte|cuenta {_NUMBER.replace(' ', '|')}; "
        "creditcard|kreditkarte|kreditkartennummer; credit card; carte bancaire; tarjeta credito",
    ),
    (
        "coordinate",
        "lat|lon|lng|latitude|longitude|latitud|longitud|latitudine|longitudine|breitengrad|laengengrad|langengrad|gps|"
        "latlon|latlng|coordinate|coordinates|coords|koordinate|koordinaten|coordonnees|coordenada|coordenadas|easting|"
        "northing|geohash|wkt; x|y coord",
    ),
    (
        "address",
        "address|addr|adresse|anschrift|street|strasse|strassenname|hausnummer|hausnr|streetname|"
        "direccion|domicilio|calle|indirizzo|endereco|adres|straat|wohnadresse; =rue; nom|numero|no rue; =house "
        "number|no|nr|num",
    ),
    (
        "record number",
        "mrn|uuid|guid|ehr|passport|reisepass|reisepassnummer|passeport|pasaporte|passnummer|ausweisnummer|"
        "personalausweis|matrikelnummer|matrikelnr|matricule|matricula|aktenzeichen|fallnummer|fallnr|patientennummer|"
        "patientennr|personalnummer|personalnr|kundennummer|kundennr|mitgliedsnummer|aufnahmenummer|"
        "expediente|nhc|ipp|kennzeichen|vin; =id|uid|identifier|identifiant|identificador|kennung|pid; "
        "historia clinica; cartella clinica; "
        "license|licence|number plate; driver|drivers license|licence; nhs|record|case|chart|dossier|registro|fall|"
        f"cartella|medical|admission|encounter|episode|visit|row|file {_NUMBER.replace(' ', '|')}; "
        f"{_PERSON.replace(' ', '|')} {_NUMBER.replace(' ', '|')}",
    ),
    (
        "name",
        "firstname|lastname|fname|lname|surname|fullname|forename|middlename|givenname|familyname|maidenname|nickname|username|"
        "vorname|vornamen|nachname|nachnamen|familienname|geburtsname|zuname|rufname|patientenname|arztname|prenom|prenoms|"
        "apellido|apellidos|cognome|sobrenome|voornaam|achternaam|initials|initialen; =name|names|nom|noms|nombre|"
        "nombres|nome|naam; ansprechpartner; nom famille|naissance|usage|jeune; "
        "completo|complet|"
        f"first|last|full|given|family|middle|maiden|nick|legal|preferred|voller|{_PERSON.replace(' ', '|')} "
        "name|names|nom|nombre|nome|naam",
    ),
    (
        "free text",
        "comment|comments|note|notes|remark|remarks|freetext|narrative|bemerkung|bemerkungen|kommentar|kommentare|"
        "anmerkung|anmerkungen|notiz|notizen|freitext|befund|commentaire|commentaires|remarque|remarques|comentario|"
        "comentarios|observaciones|notas; free text; texte libre; texto libre; =description|beschreibung|descripcion|"
        "observations",
    ),
)


class _Rule(NamedTuple):
    kind: Class
    words: tuple[frozenset[str], ...]  # of each one must stand in the name
    alone: bool  # and nothing else may

    def fits(self, words: list[str]) -> bool:
        given = set(words)
        if not all(given & either for either in self.words):
            return False
        return not self.alone or all(any(word in either for either in self.words) for word in given)


def _rules() -> tuple[_Rule, ...]:
    made = []
    for kind, written in _RULES:
        for rule in written.split(";"):
            parts = rule.strip().removeprefix("=").split()
            made.append(_Rule(kind, tuple(frozenset(part.split("|")) for part in parts), rule.strip().startswith("=")))
    return tuple(made)


_KNOWN = _rules()
_VOCABULARY = frozenset(word for rule in _KNOWN for either in rule.words for word in either)
_ENDS = ("id", "nr", "no", "number", "nummer", "name", "address", "adresse")
_ABOUT = (
    "type typ tipo has is flag known missing status count score domain available consent validity valid quality source "
    "provider model brand plan country city region state opt hat anzahl art"
)
"""With one of these words a name is about an identifier, and is none: phone_type, has_email."""


def words_of(name: str) -> list[str]:
    """The words of a column's name in small letters without accents.

    >>> words_of("Patienten-Nr."), words_of("firstName2"), words_of("Straße"), words_of("DIRECCIÓN_IP")
    (['patienten', 'nr'], ['first', 'name'], ['strasse'], ['direccion', 'ip'])
    """
    text = name.replace("ß", "ss").replace("ẞ", "SS").replace("°", " ")
    text = unicodedata.normalize("NFKD", text)
    text = "".join(c for c in text if not unicodedata.combining(c))
    text = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", text)
    return re.findall(r"[a-z]+", text.lower())


def named_like(name: str) -> Class | None:
    """What a column is by its name alone.

    >>> named_like("e_mail"), named_like("Nachname"), named_like("n° de sécurité sociale"), named_like("product_name")
    ('e-mail', 'name', 'social-security number', None)
    """
    words = words_of(name)
    words = ["email", *words[2:]] if words[:2] == ["e", "mail"] else words
    words = [part for word in words for part in _apart(word)]
    words = [
        word for word in words if word not in ("de", "del", "la", "le", "el", "des", "du", "of", "the", "der", "d")
    ]
    if set(words) & {*_ABOUT.split()}:
        return None
    return next((rule.kind for rule in _KNOWN if rule.fits(words)), None)


def _apart(word: str) -> list[str]:
    """A word that is written together, in its two parts, where both are words of the rules: patientid, phonenumber."""
    for end in _ENDS:
        if word.endswith(end) and word not in _VOCABULARY and word.removesuffix(end) in _VOCABULARY:
            return [word.removesuffix(end), end]
    return [word]


def _can_be(named: Class, kind: v.Kind, texts: pa.Array) -> bool:
    """Whether values of this form can be what the name of their column says."""
    if named in ("name", "address", "e-mail", "free text"):
        enough = named != "free text" or _share(texts, r"\S\s+\S+\s+\S") > 0
        return kind == "text" and enough
    return kind != "date" and _share(texts, r"\d") >= MOST


# -- forms of values -----------------------------------------------------------------------------------------------

_EMAIL = r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+\.[A-Za-z0-9.-]*[A-Za-z]{2,}"
_STREET = (
    r"(?i)\b(street|road|avenue|lane|drive|boulevard|rue|chemin|calle|avenida|plaza|paseo|via|piazza|rua)\b"
    r"|\b(st|rd|ave|blvd|dr|ln)\b\.?$|(stra(ß|ss)e|gasse|weg|platz|allee)\b|str\."
)
_FORMS: tuple[tuple[Class, str], ...] = (
    ("IP address", r"^((25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(25[0-5]|2[0-4]\d|1?\d?\d)$"
     r"|^([0-9A-Fa-f]{1,4}:){3,7}[0-9A-Fa-f:]+$"),
    ("social-security number", r"^\d{3}-\d{2}-\d{4}$|^[12] ?\d\d ?[01]\d ?(\d\d|2[AB]) ?\d{3} ?\d{3}( ?\d\d)?$"
     r"|^[XYZ]?-?\d{7,8}-?[A-HJ-NP-TV-Z]$|^[A-Z]{2} ?\d\d ?\d\d ?\d\d ?[A-D]$|^\d\d ?\d{6} ?[A-Z] ?\d{3}$"),
    ("phone", r"^(\+|00)[1-9][\d ()/.-]{6,18}$|^\(?0\d{1,5}\)?[ /-][\d ./-]{4,14}$|^\(\d{3}\) ?\d{3}-\d{4}$"
     r"|^\d{3}[-.]\d{3}[-.]\d{4}$|^\d{2}([ .]\d{2}){4}$|^[679]\d{2} \d{3} \d{3}$"),
    ("coordinate", r"^[(\[]?-?\d{1,3}\.\d{2,}°?\s*[,; ]\s*-?\d{1,3}\.\d{2,}°?[)\]]?$|(?i)^POINT ?\("),
    ("record number", r"^[0-9A-Fa-f]{8}-([0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}$"
     r"|^([0-9a-fA-F]{32}|[0-9a-fA-F]{40}|[0-9a-fA-F]{64})$"),
)  # fmt: skip
_IBAN = re.compile(r"[A-Z]{2}\d{2}[A-Z0-9]{11,30}")
WORDS = 6
"""A value with this number of words is a sentence."""


def _named_by_one(texts: pa.Array) -> Suspicion | None:
    """Forms that no other text has, so that a single value is enough."""
    if _share(texts, _EMAIL) > 0:
        return Suspicion("e-mail", "a value is an e-mail address, or holds one")
    return Suspicion("IBAN", "a value is an IBAN") if _any_iban(texts) else None


def _formed_like(texts: pa.Array, people: int) -> Suspicion | None:
    """What texts are by their form: one e-mail address or IBAN is enough, what occurs by chance must be most values."""
    one = _named_by_one(texts)
    if one is not None:
        return one
    for kind, pattern in _FORMS:
        if _share(texts, pattern) >= MOST:
            return Suspicion(kind, f"its values have the form of {_AN[kind]}")
    street = pc.and_(pc.match_substring_regex(texts, _STREET), pc.match_substring_regex(texts, r"\d"))
    if (pc.mean(street.cast(pa.float64())).as_py() or 0) >= MOST:
        return Suspicion("address", "its values have the form of an address")
    rarely = len(texts) >= 10 and len(texts) > 0.1 * people
    if rarely and _share(texts, rf"(\S+\s+){{{WORDS - 1}}}\S") >= 0.2:
        return Suspicion("free text", "its values are sentences")
    return None


def _share(texts: pa.Array, pattern: str) -> float:
    """The share of the texts that a pattern is found in."""
    return float(np.mean(pc.match_substring_regex(texts, pattern).to_numpy(zero_copy_only=False)))


def _any_iban(texts: pa.Array) -> bool:
    """Whether a text is an IBAN: its form, and the check digits that ISO 13616 asks for."""
    bare = pc.utf8_upper(pc.replace_substring_regex(texts, r"[\s\x{a0}-]+", ""))
    formed = bare.filter(pc.match_substring_regex(bare, rf"^{_IBAN.pattern}$"))
    return any(_checks(one) for one in formed.to_pylist())


def _checks(iban: str) -> bool:
    """Whether the check digits of an IBAN are right.

    >>> _checks("GB82WEST12345698765432"), _checks("GB83WEST12345698765432")
    (True, False)
    """
    return int("".join(str(int(letter, 36)) for letter in iban[4:] + iban[:4])) % 97 == 1


def _one_shape(texts: pa.Array, kind: v.Kind) -> bool:
    """Whether nearly all texts are the same letters and digits in the same places: P-00417, P-03982."""
    shape = pc.replace_substring_regex(pc.replace_substring_regex(texts, r"\d", "9"), r"[A-Za-z]", "a")
    commonest = pc.value_counts(shape)
    at = int(np.argmax(commonest.field("counts").to_numpy(zero_copy_only=False)))
    text, count = commonest[at]["values"].as_py(), commonest[at]["counts"].as_py()
    digits = text.count("9")
    enough = digits >= 4 if kind == "text" else digits >= 6 and digits == len(text)
    return bool(enough and count >= DISTINCT * len(texts))


# -- what a caller says of identifiers, and the pseudonyms that take their place --------------------------------------

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
