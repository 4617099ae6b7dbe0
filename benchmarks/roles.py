"""How well `jali profile` tells identifiers and roles: invented tables with the column names of real ones.

The words of src/jali/risk/roles.py were chosen while looking at the first half of the tables; the second half was
written afterwards, and its first result stands in docs/profile.md. `python -m benchmarks roles` prints both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.table import show

ROWS = 300

# A table is its columns: name, what fills it, and its role: I an identifier that must be dropped (or says whose row it
# is), Q a quasi-identifier, S sensitive, W weights. Coordinates are quasi-identifiers, which are shown on a grid.
SEEN: dict[str, str] = {
    "synthea patients": "Id uuid I|BIRTHDATE date Q|DEATHDATE date Q|SSN ssn I|DRIVERS code I|PASSPORT code I|"
    "FIRST first I|LAST last I|MARITAL cat4 Q|RACE cat5 Q|ETHNICITY cat2 Q|GENDER cat2 Q|BIRTHPLACE cat40 Q|"
    "ADDRESS street I|CITY cat40 Q|STATE cat3 Q|ZIP zip Q|LAT lat Q|LON lon Q|INCOME money S|"
    "HEALTHCARE_EXPENSES money S",
    "hospital admissions": "subject_id id I|hadm_id id I|admittime time Q|dischtime time Q|ethnicity cat6 Q|"
    "insurance cat4 Q|language cat9 Q|marital_status cat4 Q|diagnosis cat60 S|hospital_expire_flag cat2 S",
    "titanic": "PassengerId id I|Name full I|Sex cat2 Q|Age age Q|Ticket code I|Fare money S|Cabin cat90 Q",
    "german patients": "Patienten-Nr. code I|Nachname last I|Vorname first I|Geburtsdatum date Q|Geschlecht cat3 Q|"
    "Straße street I|PLZ zip Q|Ort cat30 Q|Telefon phone I|Krankenkasse cat12 Q|Versichertennummer code I|"
    "Diagnose icd S|Aufnahmedatum date Q|Bemerkungen text I",
    "hr attrition": "EmployeeNumber id I|Age age Q|Department cat3 Q|EducationField cat6 Q|Gender cat2 Q|"
    "JobRole cat9 Q|MaritalStatus cat3 Q|MonthlyIncome money S|PerformanceRating cat2 S|YearsAtCompany int40 Q",
    "telco churn": "customerID code I|gender cat2 Q|SeniorCitizen cat2 Q|Dependents cat2 Q|tenure int72 Q|"
    "MonthlyCharges money S|TotalCharges money S",
    "voter file": "voter_id id I|last_name last I|first_name first I|middle_name first I|res_street_address street I|"
    "zip_code zip Q|birth_year year Q|race_code cat6 Q|party_cd cat5 S|full_phone_number phone I|precinct cat30 Q",
    "french claims": "NIR ssnfr I|nom last I|prénom first I|date_naissance date Q|sexe cat2 Q|code_postal zip Q|"
    "commune cat30 Q|diagnostic icd S|montant_remboursé money S|courriel email I",
    "spanish register": "DNI dni I|nombre first I|apellidos last I|fecha_nacimiento date Q|sexo cat2 Q|"
    "código_postal zip Q|municipio cat30 Q|estado_civil cat4 Q|ingresos money S|correo email I|teléfono phone I|"
    "observaciones text I",
    "credit": "client_id id I|age age Q|sex cat2 Q|job cat4 Q|housing cat3 Q|credit_amount money S|default cat2 S|"
    "purpose cat8 Q",
    "students": "student_id id I|full_name full I|email email I|school cat5 Q|sex cat2 Q|age age Q|G3 int20 S|"
    "guardian cat3 Q",
    "web log": "user_id rid I|ip_address ip I|timestamp time Q|url url I|user_agent cat30 Q|country cat20 Q|"
    "session_id uuid I",
    "clinical trial": "USUBJID code I|SUBJID id I|SITEID cat9 Q|AGE age Q|SEX cat2 Q|RACE cat5 Q|COUNTRY cat7 Q|"
    "ARM cat3 Q|AETERM cat50 S|RFSTDTC date Q",
    "police stops": "officer_name full I|driver_license code I|license_plate code I|driver_age age Q|"
    "driver_gender cat2 Q|driver_race cat5 Q|violation cat9 S|stop_date date Q|latitude lat Q|longitude lon Q",
    "payroll": "employee_id code I|employee_name full I|iban iban I|hire_date date Q|department cat9 Q|"
    "position cat30 Q|salary money S|bonus money S",
    "dutch register": "bsn ssn9 I|voornaam first I|achternaam last I|geboortedatum date Q|geslacht cat2 Q|"
    "adres street I|postcode zip Q|woonplaats cat30 Q|nationaliteit cat9 Q|inkomen money S",
    "nhanes": "SEQN id I|RIDAGEYR age Q|RIAGENDR cat2 Q|race cat5 Q|education cat5 Q|WTMEC2YR float W|BMI float1 S|"
    "systolic_bp int80 S|smoker cat2 S|income_poverty_ratio float1 S",
    "taxi drivers": "hack_license code I|driver_name full I|medallion code I|pickup_datetime time Q|"
    "fare_amount money S|pickup_longitude lon Q|pickup_latitude lat Q|payment_type cat4 S",
    "italian register": "codice_fiscale cf I|cognome last I|nome first I|data_nascita date Q|sesso cat2 Q|"
    "indirizzo street I|cap zip Q|comune cat30 Q|reddito money S|professione cat20 Q",
    "covid line list": "case_id code I|patient_name full I|phone phone I|age age Q|sex cat2 Q|county cat20 Q|"
    "onset_date date Q|covid_result cat2 S|outcome cat3 S|comorbidities cat9 S|vaccinated cat2 S",
    "airline": "pnr code I|passport_number code I|passenger_name full I|nationality cat20 Q|date_of_birth date Q|"
    "seat cat90 Q|frequent_flyer_number code I|fare money S",
    "survey": "respondent_id id I|weight_final float W|age_group cat6 Q|gender cat3 Q|region cat9 Q|"
    "education_level cat6 Q|household_size int8 Q|vote_intention cat6 S|religion cat6 S|comments text I",
}  # fmt: skip
HELD_OUT: dict[str, str] = {
    "insurance claims": "policy_number id I|insured_zip zip Q|insured_sex cat2 Q|insured_education_level cat7 Q|"
    "insured_occupation cat14 Q|incident_date date Q|incident_city cat7 Q|total_claim_amount money S|"
    "vehicle_claim money S",
    "hotel guests": "booking_id code I|guest_name full I|e-mail email I|credit_card card I|phone-number phone I|"
    "country cat30 Q|arrival_date date Q|children int4 Q|adr money S",
    "german employees": "Personalnummer id I|Name full I|E-Mail email I|Geburtstag date Q|Abteilung cat9 Q|"
    "Eintrittsdatum date Q|Bruttogehalt money S|Steuer-ID ssn9 I|IBAN iban I|Konfession cat4 S|Familienstand cat4 Q|"
    "Kinderzahl int5 Q",
    "french school": "INE code I|nom_de_famille last I|prenom first I|date_de_naissance date Q|sexe cat2 Q|"
    "adresse street I|telephone phone I|etablissement cat9 Q|niveau cat6 Q|moyenne_generale float1 S|boursier cat2 S",
    "padron": "nie dni I|nombre_completo full I|domicilio street I|provincia cat20 Q|nacionalidad cat20 Q|edad age Q|"
    "nivel_estudios cat6 Q|ocupacion cat20 Q|salario_bruto money S|discapacidad cat3 S",
    "uk hospital episodes": "nhs_number ssn10 I|epikey id I|startage age Q|sex cat2 Q|ethnos cat9 Q|lsoa11 cat60 Q|"
    "postcode ukpost Q|admidate date Q|diag_01 icd S|opertn_01 cat40 S|consultant_code cat40 Q",
    "donors": "donor_id id I|donor_name full I|street_address street I|city cat30 Q|state cat9 Q|zip zip Q|"
    "employer cat60 Q|occupation cat30 Q|amount money S|donation_date date Q",
    "prison": "inmate_id id I|last_name last I|first_name first I|dob date Q|race cat5 Q|sex cat2 Q|offense cat20 S|"
    "sentence_length int40 S|facility cat9 Q|release_date date Q",
    "brazil health": "CPF ssn9 I|nome_paciente full I|nome_mae full I|data_nascimento date Q|sexo cat2 Q|"
    "raca_cor cat5 Q|municipio_residencia cat30 Q|cep zip Q|cid icd S|endereco street I",
    "polish clinic": "PESEL ssn11 I|imie first I|nazwisko last I|data_urodzenia date Q|plec cat2 Q|miasto cat20 Q|"
    "rozpoznanie icd S|telefon phone I",
    "university": "matriculation_no id I|student_name full I|university_email email I|programme cat9 Q|"
    "semester int12 Q|gpa float1 S|home_address street I|nationality cat20 Q|gender cat3 Q|tuition_debt money S",
    "gym members": "member_no id I|surname last I|forename first I|mobile phone I|gender cat2 Q|birthday date Q|"
    "height_cm int60 Q|weight_kg int70 Q|resting_heart_rate int50 S|membership_type cat3 Q",
    "app users": "device_id uuid I|advertising_id uuid I|email_hash hash I|last_ip ip I|install_date date Q|"
    "country cat20 Q|lat lat Q|lng lon Q|os_version cat9 Q|total_spend money S",
    "refugees": "registration_number code I|given_name first I|family_name last I|father_name full I|photo url I|"
    "date_of_arrival date Q|country_of_origin cat9 Q|ethnicity cat9 Q|religion cat6 S|specific_needs cat9 S|age age Q|"
    "sex cat2 Q",
    "bank customers": "account_number id I|customer_name full I|ssn ssn I|birth_date date Q|zipcode zip Q|"
    "marital cat3 Q|job cat12 Q|balance money S|loan cat2 S|education cat4 Q",
    "dhs survey": "caseid code I|v005 float W|v012 age Q|v024 cat5 Q|v106 cat4 Q|hiv_result cat2 S|v190 cat5 Q|"
    "v201 int9 Q",
    "vaccination": "mrn id I|patient_first_name first I|patient_last_name last I|date_of_birth date Q|zip5 zip Q|"
    "sex cat2 Q|vaccine_lot cat20 S|adverse_event cat9 S|provider_notes text I|insurance_member_id code I",
    "real estate": "owner_name full I|parcel_id code I|property_address street I|owner_phone phone I|sale_date date Q|"
    "sale_price money S|bedrooms int6 Q|neighborhood cat20 Q|latitude lat Q|longitude lon Q",
    "swiss insurance": "AHV-Nummer ahv I|Versichertennr id I|Jahrgang year Q|Geschlecht cat2 Q|Kanton cat20 Q|"
    "PLZ zip Q|Prämie money S|Diagnosecode icd S|Nationalität cat9 Q",
    "dating profiles": "username handle I|profile_url url I|age age Q|body_type cat6 Q|sexual_orientation cat3 S|"
    "ethnicity cat9 Q|height int20 Q|income money S|job cat20 Q|location cat60 Q|religion cat9 S|essay0 text I|"
    "drugs cat3 S",
    "library": "card_number id I|patron_name full I|branch cat9 Q|birth_year year Q|postal_code zip Q|"
    "book_title cat90 Q|checkout_date date Q|email_address email I",
    "tax": "TIN ssn9 I|taxpayer_name full I|spouse_name full I|filing_status cat5 Q|adjusted_gross_income money S|"
    "tax_owed money S|dependents int5 Q|zip zip Q|occupation cat30 Q|bank_account_no id I",
}  # fmt: skip


class Score(NamedTuple):
    """Counts over the columns of some tables."""

    tables: int
    columns: int
    identifiers: int
    named: int  # as identifiers
    right: int  # of these
    roles: Counter[tuple[str, str]]  # true role, suggested one

    @property
    def recall(self) -> float:
        """The share of the identifiers that are found."""
        return self.right / self.identifiers

    @property
    def precision(self) -> float:
        """The share of the columns named as identifiers that are."""
        return self.right / self.named


def table(text: str, seed: int) -> tuple[pa.Table, dict[str, str]]:
    """An invented table, and the role of each of its columns."""
    random = np.random.default_rng(seed)
    parts = [one.rsplit(" ", 2) for one in text.split("|")]
    columns = {name: _column(kind, random) for name, kind, _ in parts}
    return pa.table(columns), {name: role for name, _, role in parts}


def _column(kind: str, random: np.random.Generator) -> list[Any]:
    stem, number = kind.rstrip("0123456789"), kind[len(kind.rstrip("0123456789")) :]
    if stem in ("cat", "int"):
        drawn = (random.integers(0, int(number), ROWS) + random.integers(0, 2, ROWS)) % int(number)
        return [f"{'abcdefgh'[int(x) % 8]}{'lmnopq'[int(x) % 6]}{int(x)}" if stem == "cat" else int(x) for x in drawn]
    make = _FILLS[kind]
    return [make(i, random) for i in range(ROWS)]


def _last(i: int, r: np.random.Generator) -> str:
    return "".join("bcdfghklmnprst"[r.integers(14)] + "aeiou"[r.integers(5)] for _ in range(3)).capitalize()


_GIVEN = ("Ada", "Ben", "Cem", "Dora", "Eli", "Fee", "Gus", "Ida", "Jon", "Kai", "Lea", "Max", "Nora", "Otto", "Pia")


def _first(i: int, r: np.random.Generator) -> str:
    return _GIVEN[r.integers(len(_GIVEN))]


def _digits(r: np.random.Generator, many: int) -> str:
    return "".join(str(d) for d in [r.integers(1, 10), *r.integers(0, 10, many - 1)])


Fill = Callable[[int, np.random.Generator], Any]
_FILLS: dict[str, Fill] = {
    "id": lambda i, r: 100_000 + 7 * i,
    "rid": lambda i, r: 5_000 + int(r.integers(0, 90)),
    "uuid": lambda i, r: f"{r.integers(1 << 32):08x}-{i:04x}-4abc-8def-{r.integers(1 << 40):012x}",
    "hash": lambda i, r: f"{r.integers(1 << 60):016x}{r.integers(1 << 60):016x}",
    "code": lambda i, r: f"{'ABCDEFGH'[i % 8]}{'XYZ'[i % 3]}{_digits(r, 6)}",
    "first": _first,
    "last": _last,
    "full": lambda i, r: f"{_first(i, r)} {_last(i, r)}",
    "street": lambda i, r: f"{_last(i, r)} {['Street', 'Road', 'Lane', 'Weg'][r.integers(4)]} {r.integers(1, 200)}",
    "email": lambda i, r: f"{_last(i, r).lower()}{i}@example.org",
    "phone": lambda i, r: f"+49 30 {_digits(r, 7)}",
    "ssn": lambda i, r: f"{_digits(r, 3)}-{_digits(r, 2)}-{_digits(r, 4)}",
    "ssnfr": lambda i, r: f"{r.integers(1, 3)}{r.integers(20, 99)}{r.integers(1, 13):02}75{_digits(r, 6)}",
    "ssn9": lambda i, r: int(_digits(r, 9)),
    "ssn10": lambda i, r: int(_digits(r, 10)),
    "ssn11": lambda i, r: int(_digits(r, 11)),
    "ahv": lambda i, r: f"756.{_digits(r, 4)}.{_digits(r, 4)}.{_digits(r, 2)}",
    "dni": lambda i, r: f"{_digits(r, 8)}{'TRWAGMYFPDXBNJZSQVHLCKE'[r.integers(23)]}",
    "cf": lambda i, r: f"RSSMRA{_digits(r, 2)}A{_digits(r, 2)}H{_digits(r, 3)}U",
    "iban": lambda i, r: f"DE{_digits(r, 20)}",
    "card": lambda i, r: int("4" + _digits(r, 15)),
    "ip": lambda i, r: ".".join(str(x) for x in r.integers(1, 255, 4)),
    "url": lambda i, r: f"https://example.org/{_last(i, r)}/{i}",
    "handle": lambda i, r: f"{_last(i, r).lower()}{r.integers(100)}",
    "text": lambda i, r: f"{_first(i, r)} said that {_last(i, r)} was not there on day {i}",
    "lat": lambda i, r: round(float(r.uniform(40, 50)), 5),
    "lon": lambda i, r: round(float(r.uniform(5, 15)), 5),
    "age": lambda i, r: int(r.integers(18, 92)),
    "date": lambda i, r: f"{r.integers(1950, 2020)}-{r.integers(1, 13):02}-{r.integers(1, 29):02}",
    "time": lambda i, r: (
        f"{r.integers(2010, 2024)}-{r.integers(1, 13):02}-{r.integers(1, 29):02} 0{r.integers(9)}:15:00"
    ),
    "year": lambda i, r: int(r.integers(1940, 2005)),
    "zip": lambda i, r: f"{['01', '10', '20', '33', '80'][r.integers(5)]}{r.integers(100, 140)}",
    "ukpost": lambda i, r: f"{'LM'[r.integers(2)]}{r.integers(1, 9)} {r.integers(1, 9)}{'ABDEF'[r.integers(5)]}B",
    "money": lambda i, r: int(r.integers(10, 150)) * 50,
    "float": lambda i, r: round(float(r.uniform(0.2, 3)), 4),
    "float1": lambda i, r: round(float(r.normal(25, 4)), 1),
    "icd": lambda i, r: f"{'EFIJK'[r.integers(5)]}{r.integers(10, 30)}.{r.integers(10)}",
}


def suggested(frame: pa.Table) -> dict[str, str]:
    """The role of each column as the profile sees it, in one letter; a person column is an identifier that repeats."""
    import jali

    letters = {
        "identifier": "I",
        "person": "I",
        "quasi": "Q",
        "sensitive": "S",
        "weights": "W",
        "other": "O",
        "left out": "-",
    }
    return {column.name: letters[column.role] for column in jali.profile(frame).columns}


def scored(tables: dict[str, str], misses: list[str] | None = None) -> Score:
    """How well the roles of these tables are told; `misses` takes those of identifiers that are wrong."""
    roles: Counter[tuple[str, str]] = Counter()
    for seed, (name, text) in enumerate(tables.items()):
        frame, truth = table(text, seed)
        found = suggested(frame)
        for column, role in truth.items():
            roles[role, found[column]] += 1
            if misses is not None and (role == "I") != (found[column] == "I"):
                misses.append(f"{name}: {column} is {role}, named {found[column]}")
    named = sum(count for (_, said), count in roles.items() if said == "I")
    identifiers = sum(count for (true, _), count in roles.items() if true == "I")
    return Score(len(tables), sum(roles.values()), identifiers, named, roles["I", "I"], roles)


def _lines(score: Score) -> Iterator[list[str]]:
    yield ["tables", str(score.tables)]
    yield ["columns", str(score.columns)]
    yield ["identifiers", str(score.identifiers)]
    yield ["of these found", f"{score.recall:.3f}"]
    yield ["of those named right", f"{score.precision:.3f}"]
    for true, word in (("Q", "quasi-identifiers"), ("S", "sensitive columns")):
        every = sum(count for (role, _), count in score.roles.items() if role == true)
        yield [f"{word} told as such", f"{score.roles[true, true] / every:.3f}"]
        kept = sum(score.roles[true, said] for said in "QS-WO")
        yield [f"{word} not taken for identifiers", f"{kept / every:.3f}"]


def run() -> None:
    """Print the scores of both halves, and every identifier that was missed or named wrongly."""
    for title, tables in (("tables that were looked at", SEEN), ("tables that were not", HELD_OUT)):
        misses: list[str] = []
        show(f"Roles of columns: {title}", ["", "share or number"], list(_lines(scored(tables, misses))))
        print(*misses, sep="\n")
