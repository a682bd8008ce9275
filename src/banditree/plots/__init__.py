"""Draw regret, problems and logs with Matplotlib, which is imported when the first picture is drawn."""

from banditree.plots.files import data, save, svg
from banditree.plots.functions import function
from banditree.plots.lines import panels, regret, sheet, sweep
from banditree.plots.logs import intervals, rewards, support, weights
from banditree.plots.style import LOOKS, Look, looks

__all__ = [
    "LOOKS", "Look", "data", "function", "intervals", "looks", "panels", "regret", "rewards", "save", "sheet",
    "support", "svg", "sweep", "weights",
]  # fmt: skip
