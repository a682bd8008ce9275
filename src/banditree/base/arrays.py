"""Types of arrays, for annotations; the shape of an array is in a comment beside it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]  # of numbers or objects of any type
Floats = NDArray[np.float64]
Indices = NDArray[np.integer]  # node numbers, or positions of arms
Places = NDArray[np.intp]  # indices that NumPy returns, such as positions of arms
