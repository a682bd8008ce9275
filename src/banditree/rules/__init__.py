"""Rules: one file each. A new one is a file here and a line in RULES."""

from banditree.rules.base import Rule, View
from banditree.rules.best_arm import BestArm
from banditree.rules.thompson import Thompson
from banditree.rules.ucb import UCB

RULES: dict[str, type[Rule]] = {rule.__name__: rule for rule in (Thompson, UCB, BestArm)}

__all__ = ["RULES", "UCB", "BestArm", "Rule", "Thompson", "View"]
