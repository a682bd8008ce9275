"""Rules that score the children of a node, one file each. To add one, add a file here and a name to RULES."""

from banditree.rules.base import Rule, View
from banditree.rules.best_arm import BestArm
from banditree.rules.thompson import Thompson
from banditree.rules.ucb import UCB

RULES: dict[str, type[Rule]] = {rule.__name__: rule for rule in (Thompson, UCB, BestArm)}

__all__ = ["RULES", "UCB", "BestArm", "Rule", "Thompson", "View"]
