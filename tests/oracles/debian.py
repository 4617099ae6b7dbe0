"""Programs that tests need, from Debian's packages where this machine has them and we may install."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path


def need(packages: list[str], is_there: Callable[[], object]) -> str:
    """Install the packages unless what they bring is there; why that was not possible, or nothing."""
    if is_there():
        return ""
    names = " ".join(packages)
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return f"as root: apt-get install {names}"
    import fcntl

    with (Path(tempfile.gettempdir()) / "jali-tests-apt.lock").open("w") as one:
        fcntl.flock(one, fcntl.LOCK_EX)  # apt-get refuses a second one, of another worker
        if not is_there():
            quietly = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
            for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *packages]):
                subprocess.run(["apt-get", *command], env=quietly, capture_output=True, check=False)
    return "" if is_there() else f"{names} cannot be installed with apt-get here"
