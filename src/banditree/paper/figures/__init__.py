"""The figures of the paper, in its order. A new one is a file in this folder, and a line in ``FIGURES``.

>>> list(FIGURES)[:6], FIGURES["2b"].seeds
(['1a', '1b', '1c', '1d', '1e', '1f'], 100)
>>> [setting.label for setting in FIGURES["1a"].settings()][:2]
['distance=0.05', 'distance=0.1']
"""

from __future__ import annotations

from banditree.paper.figures import appendix, contextual, functions, hierarchy, kmeans, strong
from banditree.paper.figures.base import DEFAULT, Figure, Setting

FIGURES: dict[str, Figure] = {
    figure.name: figure
    for family in (strong, hierarchy, kmeans, contextual, functions, appendix)
    for figure in family.FIGURES
}

__all__ = ["DEFAULT", "FIGURES", "Figure", "Setting"]
