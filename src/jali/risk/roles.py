"""What each column of a table is likely for, and why: by the words of its name, its values, and how rare these are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jali.core.arrays import Ints, counted
from jali.encoding import values as v
from jali.encoding.builders import Automatic, bands, frequency, of_recipe, suppress
from jali.encoding.codes import prefix
from jali.encoding.hierarchy import Builder, Hierarchy, Recipe, plain
from jali.encoding.identifiers import Class, suspicion, words_of
from jali.encoding.table import Column
from jali.risk.uniques import Everybody

Role = Literal["identifier", "person", "weights", "quasi", "sensitive", "other", "left out"]
WORDS = 20
"""Texts with more distinct values than this get a level at which the rare ones are one."""
CLOSE = 50_000
"""Up to this number of people a sensitive number is promised to be close to the whole table: that takes its time."""
EXAMPLES = 3
K = 5
"""The least k that a job is suggested with."""
MOST = 0.4
"""The largest share of a sensitive value: who rules out a second one as frequent is then right in 2 of 3 cases."""
PROMISE = 'name = "FrequencyDiversity"\nl = 2.5'
CLOSENESS = 'name = "TCloseness"\nt = 0.3\ndistance = "ordered"'
TRUSTED = "publish it for readers whom you trust, with DistinctDiversity"


class Facts(NamedTuple):
    """A column as far as its role follows from it: what it is called, its values, how many rows have each."""

    name: str
    values: pa.Array  # (values,) the distinct ones that occur, of their kind, the missing one left out
    rows: Ints  # (values,) that have each
    missing: int  # rows
    people: int  # who have a value
    repeated: bool  # whether some value is that of several rows


def facts_of(column: Column, everybody: Everybody) -> Facts:
    """What the role of a column follows from."""
    rows = counted(column.codes, everybody.multiplicity, len(column.values))
    known = len(column.values) - (1 if column.values.null_count else 0)
    occurs = np.flatnonzero(rows[:known])
    people = everybody.count(np.flatnonzero(column.codes < known))
    values = column.values.take(pa.array(occurs))
    if v.kind_of(values) == "text" and v.kind_of(dated := v.inferred(values)) == "date":
        values = dated  # a frame may hold dates as texts, and dates() reads them
    return Facts(column.name, values, rows[occurs], int(rows[known:].sum()), people, bool((rows[occurs] > 1).any()))


def largest(facts: Facts) -> float | None:
    """The largest number of a column, if it has numbers."""
    found = v.numbers(facts.values) if v.kind_of(facts.values) == "number" else None
    return None if found is None or len(found) == 0 else float(found.max())


def examples(facts: Facts) -> tuple[str, ...]:
    """The most frequent values of a column, for its holder."""
    frequent = np.argsort(-facts.rows, kind="stable")[:EXAMPLES]
    return tuple(v.texts(facts.values.take(pa.array(frequent))).to_pylist())


@dataclass(frozen=True)
class Suggestion:
    """A role with the reason for it; `sure` where nobody need check it."""

    role: Role
    reason: str
    sure: bool = True
    topic: str = ""  # the class of an identifier, or what a name is about
    builder: Builder | None = None  # of a quasi-identifier
    promise: str = ""  # of a sensitive column, as the job writes it


# -- words of names ------------------------------------------------------------------------------------------------

# Words in English, German, French and Spanish, some in Italian, Portuguese and Dutch; case and accents do not count,
# and a word that ends in * is the beginning of one. "a+b" are two words that must both stand in the name.
_STRONG = {
    "date of birth": "birth birthdate birthday born dob yob geb geburt* naissance naiss nacimiento nascita "
    "nascimento geboorte*",
    "age": "age ages agep agegroup alter altersgruppe lebensalter edad eta idade leeftijd",
    "sex": "sex gender female geschlecht sexe sexo sesso genero genre geslacht",
    "postal code": "zip zipcode zcta postcode postalcode plz postleitzahl codepostal cp cap cep postal",
}  # fmt: skip
_SENSITIVE = {
    "health": "disease* diagnos* *diagnose *diagnosen *befund *erkrankung *krankheit illness condition icd* hiv* aids "
    "cancer tumor tumour symptom* medication* medicine* drug drugs treatment* therap* procedure surgery lab hba bmi "
    "pressure bp systolic diastolic pregnan* abortion mental depress* disab* covid allerg* krankheit* befund* "
    "medikament* behandlung* schwanger* behinder* maladie* traitement* medicament* handicap enfermedad* tratamiento* "
    "embarazo discapacidad malattia terapia doenca ziekte smok* viral creatinine hemoglobin insulin diabetes diabetic "
    "asthma hypertension stroke todesursache cause causa health gesundheit* sante salud overdose injury blutdruck "
    "blutgruppe tension imc genotype dna gene rauch* gravidanza readmitted comorbid* vaccin* impf* apgar tobacco "
    "*erkrankungen *krankheiten *medikation *anamnese blutzucker alkohol* alco* taba* chol* fumeur* fumador* fumat* "
    "sangui* gluc* glyc* glicemi* presion pressione arteri* pflege* laborwert* antecedent* sucht* psych*",
    "money": "inctot incwage hhincome faminc pincp wagp inc income incomes salary salaries wage wages earnings earning "
    "pay debt* loan* credit* balance wealth capital gain loss tax rent charges charge cost costs amount bonus vermogen "
    "vermoegen kredit* miete revenu revenus salaire* dette* patrimoine ingreso* salario* sueldo deuda* renta reddito "
    "stipendio inkomen salaris pension expenditure spending spend umsatz verdienst remuneration compensation price "
    "fare payment default solde loyer saldo poverty *einkommen *gehalt *lohn *schuld *schulden *vermogen pret prets "
    "montant prestamo* prestito",
    "beliefs or orientation": "party vote voted union konfession parti syndicat partido sindicato orientation sexual* "
    "belief opinion orientacion relig* politi* partei* gewerkschaft* partito",
    "crime": "crime* offense* offence* conviction* arrest* sentence* straftat* delikt* urteil infraction* delito* "
    "condena* verdict recidiv* felony prior priors custody vorstrafe* casier judiciaire penal* reato reati",
    "a judgement or result": "grade grades gpa mark marks score scores exam performance rating evaluation zeugnis "
    "calificacion calificaciones iq satisfaction result results outcome ergebnis* resultat* resultado* moyenne "
    "note schulnote *snote *noten nota notas",
}  # fmt: skip
_QUASI = {
    "date": "date dates datum fecha data day tag dia year jahr annee ano anno month monat mois mes admission* "
    "discharge* aufnahme* entlassung* ingresso alta sortie entree",
    "place": "statefip countyfip bpl city town village county state province region district municipality country "
    "residence ort wohnort stadt gemeinde kreis landkreis bundesland land ville commune departement pays ciudad "
    "municipio provincia pais comune regione cidade bairro neighborhood neighbourhood borough ward tract fips nuts "
    "location place lugar lieu birthplace metro msa puma area stadtteil bezirk quartier barrio colonia canton "
    "kanton localidad poblacion woonplaats gemeente urban rural hospital clinic clinique krankenhaus klinik station "
    "hopital facility site center centre zentrum store",
    "origin": "nationality citizenship citizen ethnicity ethnic race native immigrant staatsangehorigkeit "
    "staatsangehoerigkeit nationalitat nationalitaet herkunft* nationalite nacionalidad etnia raza origine origin "
    "hispanic tribe caste migrationshintergrund nazionalita nationaliteit language sprache langue idioma lengua "
    "muttersprache",
    "family": "marst nchild hhtype relate marital married familienstand civil matrimonial household hh haushalt* "
    "menage hogar children child kids kinder kinderzahl enfants hijos dependents dependants relationship famsize "
    "family siblings parents stato conyugal",
    "education": "education educ degree school schooling university college bildung* schulabschluss abschluss "
    "diplome etudes estudios escolaridad escolar istruzione qualification literacy studium studiengang course "
    "programme program major faculty fakultat schule ecole escuela universidad classroom",
    "work": "occupation occup occ job profession employer employment employed industry ind workclass beruf* branche "
    "arbeitgeber metier emploi ocupacion trabajo profesion professione lavoro position department dept abteilung "
    "departamento tenure seniority veteran military hours workhours firma company firm csp",
    "body": "height weight groesse grosse gewicht taille poids altura peso eye hair eyes build",
}  # fmt: skip
_CODED = "occ occup occupation job profession ind industry beruf* branche metier ocupacion profesion workclass"
_WEIGHTS = (
    "fnlwgt finalwgt wgt wgts perwt hhwt pweight pweights wtfinl wtsupp asecwt pwgtp wgtp samplingweight surveyweight "
    "hochrechnungsfaktor gewichtungsfaktor ponderation ponderacion fexp"
)
_WEIGHT_PAIRS = ("sampling", "survey", "instance", "design", "final", "person", "replicate", "analysis", "probability")
# What identifiers.py does not refuse, because its names alone are no proof, and what a first job still drops.
_DROPPED: dict[str, str] = {
    "record number": "rowid recordid caseid patientid personid customerid userid clientid memberid studentid "
    "employeeid subjectid respondentid participantid hhid householdid haushaltsnummer haushaltsnr familyid "
    "pid sid uid idnr seqn serial serialno lfdnr laufnummer versichertennr fallid patid pseudonym hash token respid "
    "anonid visitid encounterid index rownum",
    "account number": "accountno accountnumber policyno policynumber policy+number policy+no insurance+number "
    "insurance+no member+number membership+number polizza kundenkonto iban bic swift card+number cardnumber "
    "creditcardnumber cvv policennummer versicherungsnummer versicherungsnr numero+poliza",
    "certificate": "license+no licence+no license+number licence+number certificate+number certificate+no "
    "driverlicense driverslicense fuhrerschein fuhrerscheinnummer fuehrerscheinnr permis+conduire carnet",
    "vehicle": "licenseplate numberplate plate kfz nummernschild autokennzeichen immatriculation vehicle+id chassis",
    "device": "imei imsi meid udid device+id deviceid serial+number serialnumber serial+no pacemaker advertising+id "
    "idfa mac+addr macaddr cookie+id cookie session+id sessionid",
    "web address": "url urls website homepage webpage webseite link linkedin facebook twitter instagram handle "
    "skype screenname login",
    "biometric": "fingerprint fingerprints voiceprint iris retina fingerabdruck empreinte huella signature "
    "unterschrift",
    "photograph": "photo photos photograph image picture foto fotos lichtbild bild avatar selfie",
    "name": "nameofpatient patientname customername clientname employeename contactname lname fname mname surnames "
    "name1 ehename madchenname cognomi apelido apellidop apellidom",
}  # fmt: skip
_ABOUT_NONE = frozenset({"type", "count", "status", "flag", "has", "is", "category", "kind"})


def _has(words: set[str], written: str) -> bool:
    """Whether one of the words that are written, with their stars, stands in the name."""
    for one in written.split():
        parts = one.split("+")
        if all(any(_matches(word, part) for word in words) for part in parts):
            return True
    return False


def _matches(word: str, written: str) -> bool:
    """A star stands for any letters, before or after: German joins words."""
    if written.endswith("*"):
        return word.startswith(written[:-1])
    return word.endswith(written[1:]) if written.startswith("*") else word == written


def _topic(words: set[str], topics: dict[str, str]) -> str | None:
    return next((topic for topic, written in topics.items() if _has(words, written)), None)


def _words(name: str) -> set[str]:
    """The words of a name, and all of them in one, since people write zip_code and ZIPCODE."""
    words = words_of(name)
    return {*words, "".join(words)}


# -- roles ---------------------------------------------------------------------------------------------------------


def suggest(facts: Facts, *, several_rows: bool = False) -> Suggestion:
    """What a column is likely for; `several_rows` where people have more than one, by another column."""
    words = _words(facts.name)
    if len(facts.values) == 0:
        return Suggestion("left out", "it is empty")
    secret = _topic(words, _STRONG) is None and _topic(words, _SENSITIVE) is not None
    if len(facts.values) == 1 and not facts.missing and not secret:
        return Suggestion("other", "everybody has the same value")
    if _is_weight(facts, words):
        return Suggestion("weights", "its name is that of survey weights", topic="weights")
    told = _identifier(facts, words) or _known(facts, words, several_rows=several_rows)
    return told or _quasi(facts, words, "nothing tells what it is, and others may know it", "", sure=False)


def _is_weight(facts: Facts, words: set[str]) -> bool:
    named = _has(words, _WEIGHTS) or ("weight" in words and bool(words & {*_WEIGHT_PAIRS}))
    found = v.numbers(facts.values) if named and not facts.missing and v.kind_of(facts.values) == "number" else None
    return found is not None and bool((found >= 0).all()) and bool((found > 0).any())


def _identifier(facts: Facts, words: set[str]) -> Suggestion | None:
    """The role of a column that names people; None where nothing tells that it does."""
    why = suspicion(facts.name, facts.values, facts.people)
    kind = v.kind_of(facts.values)
    if why is not None and why.kind == "coordinate":
        return Suggestion("quasi", f"{why.reason}: shown on a grid", topic=why.kind, builder=_fitting(facts, words))
    if why is not None:
        rare = why.kind == "close to unique"
        return _rare(facts, words, kind) if rare else Suggestion("identifier", why.reason, topic=why.kind)
    flag = len(facts.values) <= 2 and facts.people >= 10
    dropped = None if flag or kind in ("boolean", "date") or words & _ABOUT_NONE else _topic(words, _DROPPED)
    if kind == "text" and not flag and words in ({"first"}, {"last"}, {"middle"}):
        dropped = "name"
    if dropped is not None and not (dropped == "record number" and len(facts.values) < facts.people / 20):
        return Suggestion("identifier", f"its name is that of a {dropped}", topic=dropped)
    if kind == "text" and _share(facts.values, r"(?i)^(https?://|www\.)\S+$") > 0.5:
        return Suggestion("identifier", "its values are web addresses", topic="web address")
    return None


def _rare(facts: Facts, words: set[str], kind: v.Kind) -> Suggestion | None:
    """The role of a column whose values hardly anybody shares."""
    if kind == "date" or (kind == "number" and not v.is_whole(facts.values)):
        return None
    named = _topic(words, _STRONG) or _topic(words, _SENSITIVE) or _topic(words, _QUASI)
    if named is not None and (kind == "number" or _levels(facts, words) > 1):
        return None
    dropped = None if words & _ABOUT_NONE else _topic(words, _DROPPED)
    if dropped is not None and dropped != "record number":
        return Suggestion("identifier", f"its name is that of a {dropped}", topic=dropped)
    return Suggestion("identifier", "nearly everybody has a value of their own", sure=False, topic="close to unique")


def _known(facts: Facts, words: set[str], *, several_rows: bool) -> Suggestion | None:
    """The role that the words of a name tell."""
    kind = v.kind_of(facts.values)
    strong, sensitive = _topic(words, _STRONG), _topic(words, _SENSITIVE)
    if sensitive is not None and strong is None and kind != "date":
        return _sensitive(facts, words, sensitive, several_rows=several_rows)
    topic = strong or _topic(words, _QUASI) or ("date" if kind == "date" else None)
    if topic is None:
        return None
    return _quasi(facts, words, f"others may know it: {topic}", topic, sure=True)


def as_quasi(facts: Facts, reason: str) -> Suggestion:
    """The column as a quasi-identifier that somebody should check."""
    return Suggestion("quasi", reason, False, "", _fitting(facts, _words(facts.name)))


def _quasi(facts: Facts, words: set[str], reason: str, topic: str, *, sure: bool) -> Suggestion:
    builder = _fitting(facts, words)
    hardly = len(facts.values) > facts.people / 2 and len(facts.values) > 2 * K
    if hardly and _built(facts, builder).height < 2:
        return Suggestion("left out", "hardly anybody shares a value, and no hierarchy fits", sure=False, topic=topic)
    return Suggestion("quasi", reason, sure, topic, builder)


def _sensitive(facts: Facts, words: set[str], topic: str, *, several_rows: bool) -> Suggestion:
    """A sensitive column with its promises; left out where none would make it safe for everybody to read."""
    reason = f"nobody should learn it: {topic}"
    kind, distinct = v.kind_of(facts.values), len(facts.values)
    if distinct == 1:
        empty = "only one value is known: if an empty cell means another one, write it into the file"
        what = empty if facts.missing else "everybody has the same value, and would be known to have it"
        return Suggestion("left out", f"{reason}; {what}", sure=False, topic=topic)
    close = suspicion(facts.name, facts.values, facts.people)
    if close is not None or v.needless_digits(facts.values):
        what = f"{reason}; its values tell people apart: round them, or write bands of them into the file"
        return Suggestion("left out", what, sure=False, topic=topic)
    if several_rows:
        what = f"{reason}; people have several rows, and no promise holds against an attacker who knows the algorithm"
        return Suggestion("left out", f"{what}: {TRUSTED}", sure=False, topic=topic)
    if float(facts.rows.max()) > MOST * float(facts.rows.sum()):
        what = f"{reason}; over 2 in 5 people have one value: an attacker who rules out another is nearly sure of it"
        return Suggestion("left out", f"{what}: {TRUSTED}", sure=False, topic=topic)
    close_by = kind == "number" and distinct > WORDS and facts.people <= CLOSE
    return Suggestion("sensitive", reason, True, topic, promise=f"{PROMISE}\n\n{CLOSENESS}" if close_by else PROMISE)


# -- hierarchies ---------------------------------------------------------------------------------------------------


def _fitting(facts: Facts, words: set[str]) -> Builder:
    """The builder of a hierarchy that fits: one for ages, postal codes and words that are rare, else jali's own."""
    kind = v.kind_of(facts.values)
    if kind == "number" and _has(words, _STRONG["age"]) and v.is_whole(facts.values):
        found = v.numbers(facts.values)
        if found is not None and found.min() >= 0 and found.max() < 120 and found.max() > 20:
            return bands(5, 10, 20, 40, low=0, high=119, top=90 if found.max() >= 90 else None)
    if _has(words, _STRONG["postal code"]) and _share(v.texts(facts.values), r"^[0-9]{4,6}$") == 1:
        return prefix(3, 2, 1)
    topic = _topic(words, _STRONG) or _topic(words, _QUASI)
    coded = kind == "number" and (topic in ("place", "origin") or _has(words, _CODED)) and v.is_whole(facts.values)
    if len(facts.values) > WORDS and (coded or (kind == "text" and _automatic(facts).height < 2)):
        return frequency(max(2 * K, int(facts.rows.sum()) // 50))
    if coded:
        return suppress()  # numbers of places and jobs are names: no interval of them means anything
    made = _automatic(facts).recipe
    return suppress() if made is None else of_recipe(made)


def _automatic(facts: Facts) -> Hierarchy:
    return Automatic().build(facts.name, facts.values)


def _built(facts: Facts, builder: Builder) -> Hierarchy:
    """The hierarchy that a builder makes of the values that occur."""
    values = builder.typed(facts.name, facts.values)
    domain, _ = builder.domain(facts.name, values)
    place = v.places(domain, values)
    rows = np.zeros(len(domain), dtype=np.int64)
    np.add.at(rows, place, facts.rows)
    made = builder.counted(facts.name, domain, rows) if builder.counts_rows else builder
    return made.build(facts.name, domain)


def _levels(facts: Facts, words: set[str]) -> int:
    return _built(facts, _fitting(facts, words)).height


def _share(texts: pa.Array, pattern: str) -> float:
    if not pa.types.is_string(texts.type) or len(texts) == 0:
        return 0.0
    return float(np.mean(pc.match_substring_regex(texts, pattern).to_numpy(zero_copy_only=False)))


def recipe_of(facts: Facts, builder: Builder | None) -> tuple[Recipe, int]:
    """What a builder, keep-or-hide if there is none, makes of a column, and the number of its levels."""
    made = _built(facts, builder or suppress())
    assert made.recipe is not None  # builders say what they are
    return made.recipe, made.height + 1


def spec(recipe: Recipe) -> str:
    """A recipe as a job writes it.

    >>> spec(Recipe.read("bands(5, 10, top=90)"))
    '{ bands = [5, 10], top = 90 }'
    """
    if recipe.family in ("mask", "suppress") or recipe == Recipe(recipe.family):
        return f'"{recipe.family}"'
    words = [f'"{word}"' for word in recipe.words]
    own: Any = [*words, *map(plain, recipe.widths)]
    first = own[0] if words and recipe.family in ("prefix", "zip") and len(own) == 1 else f"[{', '.join(own)}]"
    named = [(name, getattr(recipe, name)) for name in ("low", "high", "bottom", "top", "step")]
    more = "".join(f", {name} = {plain(x)}" for name, x in named if x is not None)
    return f"{{ {recipe.family} = {first}{more} }}"


# -- the 18 classes of Safe Harbor ---------------------------------------------------------------------------------


class Class18(NamedTuple):
    """A class of HIPAA's Safe Harbor, 45 CFR 164.514(b)(2)(i), in our words, and the topics of its columns."""

    letter: str
    title: str
    topics: tuple[Class | str, ...]
    words: str = ""


SAFE_HARBOR = (
    Class18("A", "names", ("name",)),
    Class18("B", "places smaller than a state, but for the first three digits of a ZIP code where more than 20,000 "
            "people live", ("address", "coordinate", "postal code", "place")),
    Class18("C", "dates of a person finer than a year, and ages over 89", ("date", "date of birth", "age")),
    Class18("D", "telephone numbers", ("phone",)),
    Class18("E", "fax numbers", (), "fax"),
    Class18("F", "e-mail addresses", ("e-mail",)),
    Class18("G", "social security numbers", ("social-security number",)),
    Class18("H", "medical record numbers", ("record number",)),
    Class18("I", "numbers of health insurance", (), "insurance beneficiary versicherten* policy member health+plan"),
    Class18("J", "account numbers", ("IBAN", "account number")),
    Class18("K", "numbers of certificates and licences", ("certificate",), "license licence passport fuhrerschein"),
    Class18("L", "vehicles and their plates", ("vehicle",), "vin kennzeichen plate"),
    Class18("M", "devices and their serial numbers", ("device",), "device+serial"),
    Class18("N", "web addresses", ("web address",)), Class18("O", "IP addresses", ("IP address",)),
    Class18("P", "biometric identifiers", ("biometric",)),
    Class18("Q", "photographs of faces", ("photograph",)),
    Class18("R", "any other unique number, characteristic or code", ("close to unique", "free text")),
)  # fmt: skip


def in_class(one: Class18, name: str, suggested: Suggestion, oldest: float | None) -> bool:
    """Whether a column belongs to a class of Safe Harbor; `oldest` is its largest number."""
    if suggested.topic == "age":
        return "age" in one.topics and oldest is not None and oldest > 89
    return suggested.topic in one.topics or (suggested.role == "identifier" and _has(_words(name), one.words))


_US_STATE = re.compile(r"(?i)^(state|country|bundesland|pays|land|pais)$")


def is_wide(name: str) -> bool:
    """Whether a place is at least as large as a state, so that Safe Harbor lets it pass."""
    return any(_US_STATE.match(word) for word in words_of(name))
