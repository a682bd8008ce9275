"""The figures of the paper, in its order. A new one is a `Figure` in one of these files, and its name in ``FIGURES``.

>>> list(FIGURES)[:6], FIGURES["2b"].seeds
(['1a', '1b', '1c', '1d', '1e', '1f'], 100)
>>> [setting.label for setting in FIGURES["1a"].settings()][:2]
['distance=0.05', 'distance=0.1']
"""

from __future__ import annotations

from banditree.paper.figures.appendix import FUNCTIONS, REGRET
from banditree.paper.figures.base import DEFAULT, Figure, Setting
from banditree.paper.figures.figure_1 import DOMINANCE, HIERARCHY
from banditree.paper.figures.figure_2 import CONTEXTS, KMEANS

FIGURES: dict[str, Figure] = {
    figure.name: figure for figure in (*DOMINANCE, *HIERARCHY, *KMEANS, *CONTEXTS, *FUNCTIONS, *REGRET)
}

__all__ = ["DEFAULT", "FIGURES", "Figure", "Setting"]
