"""numpy, loaded so that its BLAS uses one thread; everything here that computes takes `np` from this module.

The matrices of a prompt are small: a second thread only spins (22 ms of CPU per prompt with one thread, 65
with two on a busy machine), and a process that has BLAS threads must not fork. The variable is read once,
while numpy loads, and taken back so that tools do not inherit it. Who has imported numpy before keeps their
threads.
"""

from __future__ import annotations

import os
from typing import Final, TypeAlias

_VARIABLE: Final = "OPENBLAS_NUM_THREADS"
_unset: Final = _VARIABLE not in os.environ

os.environ.setdefault(_VARIABLE, "1")
try:
    import numpy as np
    from numpy.typing import NDArray
finally:
    if _unset:
        del os.environ[_VARIABLE]

Vectors: TypeAlias = NDArray[np.float32]
"""Embeddings, one a row."""

__all__ = ["Vectors", "np"]
