"""All drawing. matplotlib is imported when a picture is asked for."""

from banditree.plots.files import save
from banditree.plots.functions import function
from banditree.plots.lines import panels, regret, sheet, sweep
from banditree.plots.style import LOOKS, Look, looks

__all__ = ["LOOKS", "Look", "function", "looks", "panels", "regret", "save", "sheet", "sweep"]
