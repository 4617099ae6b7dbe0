"""A bucket of S3, as a server on this machine serves it: read, published and refused in a line, in a new process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import jali
from oracles.servers import buckets

pytestmark = pytest.mark.slow
JOB = """
input = "s3://{place}"
output = "out"
quasi = ["age"]
sensitive = ["ill"]
[[principles]]
name = "KAnonymity"
k = 2
"""


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    """A bucket with two files of six people each."""
    folder = tmp_path / "served" / "clinic" / "patients"
    folder.mkdir(parents=True)
    for part in range(2):
        ages = pa.array([20 + part, 20, 20, 30, 30, 30])
        pq.write_table(pa.table({"age": ages, "ill": ["flu", "cold", "flu"] * 2}), folder / f"part-{part}.parquet")
    return tmp_path / "served"


def publish(served: Path, folder: Path, place: str) -> subprocess.CompletedProcess[str]:
    """`jali publish` of what lies in the bucket, by somebody whose machine knows the server."""
    (folder / "job.toml").write_text(JOB.format(place=place))
    with buckets(served) as server:
        own = {"AWS_ENDPOINT_URL": server, "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
               "AWS_ACCESS_KEY_ID": "ann", "AWS_SECRET_ACCESS_KEY": "none of your business"}  # fmt: skip
        return subprocess.run([sys.executable, "-m", "jali", "publish", "job.toml"], cwd=folder, env=os.environ | own,
                              capture_output=True, text=True, check=False)  # fmt: skip


@pytest.mark.parametrize("place", ["clinic/patients", "clinic/patients/", "clinic/patients/*.parquet"])
def test_a_bucket_is_published_like_a_folder(clinic: Path, tmp_path: Path, place: str) -> None:
    """All files are one table, whatever way they are named."""
    done = publish(clinic, tmp_path, place)
    assert done.returncode == 0, done.stderr
    here = jali.read(clinic / "clinic" / "patients", quasi=["age"], sensitive=["ill"])
    ages = sorted(jali.load(tmp_path / "out").frame("arrow")["age"].to_pylist())
    assert ages == sorted(jali.generalize(here, jali.KAnonymity(2)).frame("arrow")["age"].to_pylist())
    assert len(ages) == 12


@pytest.mark.parametrize(
    ("place", "said"),
    [("clinic/no", "no file s3://clinic/no"), ("other/x", "s3://other/x cannot be read"), ("clinic/*.csv", "without")],
)
def test_what_is_not_there_is_one_line(clinic: Path, tmp_path: Path, place: str, said: str) -> None:
    """It names the place, and neither the server nor the key."""
    done = publish(clinic, tmp_path, place)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert "127.0.0.1" not in done.stderr
    assert "business" not in done.stderr
    assert not (tmp_path / "out").exists()
