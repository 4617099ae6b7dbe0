"""How kernels are compiled."""

from __future__ import annotations

from typing import Any

import numba

njit: Any = numba.njit  # its stub lacks the options below
inner = njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""For kernels that only kernels call: without wrappers for Python and C they compile faster."""
