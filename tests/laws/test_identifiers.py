"""Direct identifiers: columns that name people are refused, dropped or replaced by pseudonyms; notes say the rest."""

from __future__ import annotations

import datetime as dt
import json
import os
import stat
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jali
from jali.encoding.identifiers import named_like, pseudonyms, suspicion
from jali.job import Job

NAMED = {
    "name": "name Name first_name LastName fname full_name surname patient_name Vorname Nachname Familienname "
    "Geburtsname "
    "Name_des_Patienten nom prénom nom_de_famille nom_naissance nombre apellido1 Apellidos nombre_paciente cognome "
    "voornaam sobrenome nombre_completo Arztname",
    "address": "address home_address street HouseNumber Adresse Anschrift Straße Hausnr. rue dirección domicilio calle "
    "indirizzo",
    "e-mail": "email E-Mail e_mail mail email_address courriel correo_electronico Mailadresse posta_elettronica",
    "phone": "phone PhoneNumber phonenumber TelNr mobile telephone Telefon Handynummer Rufnummer téléphone "
    "num_portable teléfono móvil cellulare",
    "social-security number": "SSN social_security_no nino national_id Sozialversicherungsnummer SV-Nummer steuer_id "
    "nir numéro_de_sécurité_sociale insee DNI nif numero_seguridad_social codice_fiscale "
    "Krankenkassennummer numero_carte_vitale tessera_sanitaria partita_iva",
    "record number": "id MRN patient_id patientid PatientID userid record_no case_number nhs_number uuid passport "
    "Patientennummer "
    "Fallnummer Aktenzeichen Matrikelnummer numero_dossier matricule identifiant_patient id_paciente historia_clinica "
    "expediente nhc numero_cartella",
    "IBAN": "IBAN account_number bank_account Kontonummer compte_bancaire cuenta_bancaria credit_card",
    "IP address": "ip ip_address IPAddress IP-Adresse adresse_ip direccion_ip",
    "coordinate": "lat Longitude gps latitude_wgs Breitengrad Längengrad coordonnées latitud coordenadas x_coord",
    "free text": "comments Notes free_text Bemerkung Freitext commentaires observaciones texto_libre",
}
UNNAMED = (
    "age sex zip postcode city country country_name product_name hospital_name drug_name education education-num "
    "occupation marital-status relationship native-country capital-gain hours-per-week income salary-class disease "
    "diagnosis icd10 ward hospital_id region_id department date_of_birth admitted length_of_stay phone_type has_email "
    "email_domain mobile_score cell_count covid_test grid_cell valid casino plaid weight Geburtsdatum Geschlecht "
    "Familienstand Beruf Postleitzahl Diagnose "
    "Gewicht Größe date_naissance sexe profession code_postal ville poids taille fecha_nacimiento sexo provincia "
    "municipio profesion peso altura platelets latent_class longevity mailing_list_size namespace notation address_type"
)
ROWS = 120


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, text in NAMED.items() for name in text.split()])
def test_a_column_is_known_by_its_name_in_several_languages(kind: str, name: str) -> None:
    assert named_like(name) == kind


@pytest.mark.parametrize("name", UNNAMED.split())
def test_other_columns_are_not_taken_for_identifiers(name: str) -> None:
    assert named_like(name) is None


def _iban(number: int) -> str:
    """An IBAN with the check digits of ISO 13616."""
    body = f"{number:018d}"
    check = 98 - int(body + "131400") % 97
    return f"DE{check:02d}{body}"


FORMS: dict[str, Any] = {
    "e-mail": lambda i: f"person{i}@example.org",
    "phone": lambda i: f"+43 1 588{i:04d}",
    "social-security number": lambda i: f"{100 + i}-{i % 90 + 10}-{1000 + i}",
    "IBAN": _iban,
    "IP address": lambda i: f"10.0.{i % 7}.{i}",
    "coordinate": lambda i: f"48.{2000 + i}, 16.{3000 + i}",
    "address": lambda i: f"{i + 1} Station Road" if i % 2 else f"Hauptstraße {i + 1}",
    "record number": lambda i: f"{i:08x}-0000-4000-8000-{i:012x}",
    "free text": lambda i: f"patient {i} was brought in late at night by neighbours",
}


@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize("role", ["other", "sensitive"])
def test_values_give_an_identifier_away_whatever_their_column_is_called(kind: str, role: str) -> None:
    """Also where a third of the values are repeated, so that they are not close to unique."""
    values = [FORMS[kind](i % 80) for i in range(ROWS)]
    found = suspicion("x1", pa.array(sorted(set(values))), ROWS)
    assert found is not None
    assert found.kind == kind
    with pytest.raises(jali.InputError, match=f"looks like an identifier \\({kind}\\)") as problem:
        jali.generalize(_table(values, role), [jali.KAnonymity(2)])
    assert not any(value in str(problem.value) for value in values)


def test_one_e_mail_address_among_other_values_is_enough() -> None:
    values = pa.array(["flu", "cold", "ulcer, ask jane.roe@example.org", "gout"])
    found = suspicion("x1", values, 1000)
    assert found is not None
    assert found.kind == "e-mail"


def test_codes_of_one_shape_need_not_be_all_distinct() -> None:
    """Identifiers of which 89 % are distinct are found by their shape."""
    for values in ([f"P-{i:06d}" for i in range(178)], list(range(4_000_000, 4_000_178))):
        found = suspicion("x1", pa.array(values), 200)
        assert found is not None
        assert found.kind == "close to unique"


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("phone", ["yes", "no"]),
        ("email", [True, False]),
        ("lat", ["left", "right", "both"]),
        ("note", [1.0, 1.3, 1.7, 2.0, 2.3]),
        ("x1", [f"disease {i}" for i in range(60)]),
        ("x1", ["Some college but no degree at all"] + [f"grade {i}" for i in range(12)]),
        ("version", ["1.2.3.4", "2.0", "2.1", "3.0"]),
    ],
)
def test_what_cannot_be_an_identifier_is_published(name: str, values: list[Any]) -> None:
    assert suspicion(name, pa.array(values), 1000) is None


@given(st.integers(1, 400), st.integers(1, 400))
def test_close_to_unique_is_more_than_nine_in_ten_of_a_hundred_people(distinct: int, more: int) -> None:
    people = distinct + more - 1
    found = suspicion("x1", pa.array([f"v{chr(97 + i % 26)}{'x' * (i // 26)}" for i in range(distinct)]), people)
    assert (found is not None) == (people >= 100 and 10 * distinct > 9 * people)


def _table(values: list[Any], role: str = "other", **more: Any) -> jali.Table:
    rows = len(values)
    frame = pa.table(
        {"zip": [str(10 + i % 3) for i in range(rows)], "x1": values, "ill": ["flu", "cold"] * (rows // 2)}
    )
    sensitive = ["ill", "x1"] if role == "sensitive" else ["ill"]
    other = ["x1"] if role == "other" else []
    return jali.table(frame, quasi={"zip": jali.mask()}, sensitive=sensitive, other=other, **more)


UNIQUE = [f"{chr(65 + i % 26)}{'x' * (i // 26)}" for i in range(ROWS)]
DIVERSE = [jali.KAnonymity(2), jali.DistinctDiversity(2, sensitive="ill")]


@pytest.mark.parametrize("role", ["other", "sensitive"])
def test_a_reason_allows_it_and_is_repeated(role: str, tmp_path: Path) -> None:
    with pytest.raises(jali.InputError, match=r"allow = \{ x1 ="):
        jali.generalize(_table(UNIQUE, role), DIVERSE)
    made = jali.generalize(_table(UNIQUE, role, allow={"x1": "  names of \n stars "}), DIVERSE)
    again = jali.load(made.save(tmp_path / "out"))
    for release in (made, again):
        assert release.manifest.allowed == {"x1": "names of stars"}
        assert "x1: names of stars" in repr(release)
    assert "names of stars" in jali.report(again).html
    assert not any(value in note for value in UNIQUE for note in again.notes)


@pytest.mark.parametrize(
    ("allow", "problem"),
    [({"zip": "why"}, "not published as it is"), ({"x1": " "}, "no reason"), (["x1"], "must map"), ({"y": "a"}, "not")],
)
def test_a_reason_that_is_none_is_refused(allow: Any, problem: str) -> None:
    with pytest.raises(jali.InputError, match=problem):
        _table(UNIQUE, allow=allow)


@pytest.mark.parametrize("kind", ["number", "date"])
def test_sensitive_measurements_that_are_close_to_unique_get_a_note(kind: str) -> None:
    day = dt.date(1950, 1, 1)
    values = [1.5 * i if kind == "number" else day + dt.timedelta(days=17 * i) for i in range(ROWS)]
    release = jali.generalize(_table(values, "sensitive"), DIVERSE)
    assert any('"x1" is close to unique' in note for note in release.notes)
    assert not any("unique" in note for note in jali.generalize(_table([1.5, 2.5] * 60, "sensitive"), DIVERSE).notes)
    with pytest.raises(jali.InputError, match="close to unique"):
        jali.generalize(_table(values, "other"), DIVERSE)


@pytest.mark.parametrize(
    "publish",
    [jali.generalize, jali.partition, jali.recode, jali.anatomize, lambda t, p: jali.angelize(t, p, k=2),
     jali.marginals, jali.frontier],
)  # fmt: skip
def test_every_method_refuses(publish: Any) -> None:
    with pytest.raises(jali.InputError, match="looks like an identifier"):
        publish(_table(UNIQUE, "sensitive"), [jali.DistinctDiversity(2, sensitive="ill")])


# -- identifiers that are named ------------------------------------------------------------------------------------


def _identified(**more: Any) -> jali.Table:
    columns = {"zip": list("1122"), "pid": ["17", "4", "8", None], "nom": list("abcd"), "ill": list("xyxy")}
    return jali.table(pa.table(columns), quasi={"zip": jali.mask()}, sensitive=["ill"], **more)


def test_an_identifier_is_dropped_and_told(tmp_path: Path) -> None:
    table = _identified(identifier=["pid", "nom"])
    assert table.dropped == ("pid", "nom")
    assert not table.unnamed
    assert "identifier pid, nom: not published" in repr(table)
    folder = jali.generalize(table, DIVERSE).save(tmp_path / "out")
    assert "pid" not in (folder / "manifest.json").read_text() + (folder / "data.csv").read_text()


def test_pseudonyms_are_unlinkable_unless_the_same_key_is_given(tmp_path: Path) -> None:
    def published(**more: Any) -> dict[str | None, str]:
        release = jali.generalize(_identified(identifier={"pid": "pseudonym"}, **more), DIVERSE)
        assert release["pid"].role == "identifier"
        rows = release.frame("arrow").to_pylist()
        return {row["pid"]: row["ill"] for row in rows}

    key = tmp_path / "keys" / "key"
    key.parent.mkdir()
    fresh, other, kept, again = published(), published(), published(pseudonym_key=key), published(pseudonym_key=key)
    assert len(fresh) == 4  # one of them is missing, as in the table
    assert set(fresh) & set(other) == {None}
    assert set(fresh) & set(kept) == {None}
    assert kept == again
    assert all(len(name) == 32 and name not in ("17", "4", "8") for name in kept if name is not None)
    if os.name == "posix":
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
        key.chmod(0o644)
        with pytest.raises(jali.InputError, match="others can read the key"):
            published(pseudonym_key=key)


def test_a_file_that_is_no_key_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("not a key")
    file.chmod(0o600)
    with pytest.raises(jali.InputError, match="holds no key"):
        _identified(identifier={"pid": "pseudonym"}, pseudonym_key=file)
    assert file.read_text() == "not a key"


@given(st.lists(st.text(min_size=1), unique=True, min_size=1), st.binary(min_size=32, max_size=32))
def test_pseudonyms_are_distinct_and_depend_on_key_column_and_value(values: list[str], key: bytes) -> None:
    made = pseudonyms("pid", pa.array(values), key).to_pylist()
    assert len(set(made)) == len(values)
    assert pseudonyms("pid", pa.array(values[::-1]), key).to_pylist() == made[::-1]
    assert not {*made} & {*pseudonyms("mother", pa.array(values), key).to_pylist()}
    assert not {*made} & {*pseudonyms("pid", pa.array(values), bytes(32) if any(key) else key[:31] + b"1").to_pylist()}


def test_a_pseudonym_is_refused_where_it_ties_rows_together() -> None:
    frame = pa.table({"zip": ["1"] * 4, "pid": list("aabb"), "ill": list("xyxy")})
    roles: dict[str, Any] = {"quasi": {"zip": jali.mask()}, "sensitive": ["ill"], "identifier": {"pid": "pseudonym"}}
    with pytest.raises(jali.InputError, match="people have several rows"):
        jali.generalize(jali.table(frame, **roles), DIVERSE)
    several = frame.append_column("who", pa.array([1, 2, 2, 3])).set_column(1, "pid", pa.array(list("abcd")))
    with pytest.raises(jali.InputError, match="people have several rows"):
        jali.generalize(jali.table(several, person="who", **roles), DIVERSE)
    unique = frame.set_column(1, "pid", pa.array(list("abcd")))
    for verb in (jali.anatomize, jali.marginals, lambda t, p: jali.angelize(t, p, k=2)):
        with pytest.raises(jali.InputError, match="pseudonym would tie the tables"):
            verb(jali.table(unique, **roles), [jali.DistinctDiversity(2)])


@pytest.mark.parametrize("verb", [jali.generalize, jali.partition])
def test_a_pseudonym_is_no_part_of_estimates_and_audits(verb: Any) -> None:
    release = verb(_identified(identifier={"pid": "pseudonym", "nom": "drop"}), DIVERSE)
    assert release.estimate().sample(3, seed=1).column_names == ["zip", "ill"]
    assert "pid" not in str(jali.audit(release))
    assert jali.measure(release, _identified(identifier={"pid": "pseudonym"})).kl >= 0


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"pid": "pseudonim"}, "did you mean"),
        ({"pid": 3}, "is dropped or gets"),
        (["zip"], "zip"),
        (["x"], 'no column "x"'),
    ],
)
def test_what_identifier_cannot_mean_is_refused(given: Any, problem: str) -> None:
    with pytest.raises(jali.InputError, match=problem):
        _identified(identifier=given)


# -- notes ---------------------------------------------------------------------------------------------------------


def test_a_sensitive_column_without_a_promise_is_noted() -> None:
    table = _table(["a", "b", "c"] * 40, "sensitive")
    notes = {"ill", "x1"}
    for required, silent in (
        ([jali.KAnonymity(2)], notes),
        (DIVERSE, {"x1"}),
        ([jali.MultiAttribute(jali.DistinctDiversity(1))], set()),
        ([jali.DistinctDiversity(1, sensitive="ill"), jali.TCloseness(1, sensitive="x1")], set()),
    ):
        found = jali.generalize(table, required).notes
        assert {name for name in notes if any(f'sensitive column "{name}"' in note for note in found)} == silent
    alone = jali.generalize(_table(["a"] * ROWS, "none"), [jali.DistinctDiversity(2)])
    assert alone.notes == ()


def test_needless_digits_are_noted() -> None:
    long = [3.20000004768372, 1.10000002384186, 7.5] * 40
    assert any("round them" in note for note in jali.generalize(_table(long, "sensitive"), DIVERSE).notes)
    for values in ([0.1, 2.5, 7.25] * 40, [1 / 3, 2 / 7, 3 / 11] * 40, [1, 2, 3] * 40):
        assert not any("round them" in note for note in jali.generalize(_table(values, "sensitive"), DIVERSE).notes)


def test_a_table_of_stars_is_noted_with_what_to_do() -> None:
    frame = pa.table({"zip": [*"ab"] * 5 + ["z"], "ill": ["x", "y", "x", "y", "z", "x", "y", "x", "x", "y", "z"]})
    table = jali.table(frame, quasi={"zip": jali.suppress()}, sensitive=["ill"])
    stars = jali.generalize(table, [jali.KAnonymity(3), jali.DistinctDiversity(2)])
    assert [note for note in stars.notes if "suppress = 0.05" in note]
    some = jali.generalize(table, [jali.KAnonymity(1)])
    assert not [note for note in some.notes if "shown as *" in note]


JOB = """\
input = "people.csv"
output = "out"
{more}
[quasi]
zip = "mask"
[sensitive]
ill = true
{section}
[[principles]]
name = "KAnonymity"
k = 2
"""


def _job(folder: Path, more: str = "", section: str = "") -> Job:
    lines = [f"{10 + i % 2},{'flu' if i % 3 else 'cold'},p{i}" for i in range(12)]
    (folder / "people.csv").write_text("\n".join(["zip,ill,pid", *lines]))
    (folder / "job.toml").write_text(JOB.format(more=more, section=section))
    return Job.load(folder / "job.toml")


def test_a_section_that_the_method_ignores_is_noted_and_strict_refuses(tmp_path: Path) -> None:
    job = _job(tmp_path, 'method = "partition"', "[generalize]\nsuppress = 0.1")
    notes = job.run().notes
    assert notes[0] == '[generalize] is not used: method = "partition"'
    strict = _job(tmp_path, 'method = "partition"\nstrict = true', "[generalize]\nsuppress = 0.1")
    with pytest.raises(jali.InputError, match=r"strict: \[generalize\] is not used.*no promise is about"):
        strict.run()


def test_a_job_says_what_identifiers_are(tmp_path: Path) -> None:
    job = _job(tmp_path, 'identifier = { pid = "pseudonym" }\npseudonym_key = "key"')
    assert job.pseudonym_key == tmp_path / "key"
    assert job.run(job.table())["pid"].role == "identifier"
    assert _job(tmp_path, 'identifier = ["pid"]').table().dropped == ("pid",)
    for wrong, problem in (
        ('identifier = ["pid"]\npseudonym_key = "key"', "pseudonym_key is for pseudonyms"),
        ('identifier = { pid = "pseudonym" }\npseudonym_key = "out/key"', "must not lie in the folder"),
        ('other = ["pid"]\nallow = { pid = "" }', "no reason"),
        ('identifier = ["pid", "pid"]', "twice"),
        ('identifier = ["pid"]\nother = ["pid"]', "as other and as identifier"),
    ):
        with pytest.raises(jali.InputError, match=problem):
            _job(tmp_path, wrong)


@given(notes=st.lists(st.text(), max_size=3), allowed=st.dictionaries(st.text(), st.text(), max_size=2))
def test_notes_and_reasons_come_back_from_a_manifest(notes: list[str], allowed: dict[str, str]) -> None:
    from dataclasses import replace

    from jali.releases.base import Manifest

    made = replace(jali.generalize(_identified(), DIVERSE).manifest, notes=tuple(notes), allowed=allowed, metrics={})
    told = json.loads(json.dumps(made.to_dict()))
    assert Manifest.from_dict(told) == made
    for wrong in ({"notes": [1]}, {"notes": "a"}, {"allowed": {"a": 1}}, {"allowed": ["a"]}):
        with pytest.raises(ValueError, match="not a manifest"):
            Manifest.from_dict(told | wrong)


@pytest.mark.parametrize("one", ["max@mail.de", "DE89370400440532013000", "de89 3704 0044 0532 0130 00"])
def test_a_single_address_or_account_is_enough_in_a_flag_too(one: str) -> None:
    """Two values of many people are a flag, unless one of them is somebody's address or account."""
    frame = pa.table({"a": [1] * 12, "s": list("uvw") * 4, "c": ["none"] * 11 + [one]})
    with pytest.raises(jali.InputError, match='"c"'):
        jali.generalize(jali.table(frame, quasi=["a"], sensitive=["s"], other=["c"]), [jali.KAnonymity(2)])


def test_streets_are_known_by_their_short_form() -> None:
    """Hauptstr. 5 is an address."""
    found = suspicion("where", pa.array([f"Hauptstr. {n}" for n in range(12)]), 12)
    assert found is not None
    assert found.kind == "address"
