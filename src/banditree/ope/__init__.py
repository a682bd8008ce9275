"""Off-policy evaluation: estimate what a policy would have earned in place of the one that wrote a log.

>>> import banditree as bt
>>> sorted(bt.ope.ESTIMATORS)
['dm', 'dr', 'dros', 'ips', 'mips', 'offcem', 'sndr', 'snips', 'switch-dr']
"""

from banditree.data.defects import Defect
from banditree.data.items import read_tree
from banditree.data.log import Log, LogError, read_log
from banditree.ope.contest import Contest, contest
from banditree.ope.estimators import (
    DM,
    DR,
    ESTIMATORS,
    IPS,
    MIPS,
    SNDR,
    SNIPS,
    DRos,
    Estimator,
    OffCEM,
    SwitchDR,
    scales,
    slope,
)
from banditree.ope.evaluation import Difference, Estimate, Evaluation, evaluate
from banditree.ope.models import believed_means
from banditree.ope.rejection import Replay, replay
from banditree.ope.sums import Form, Groups, effective_sample_size, mean_and_error
from banditree.problems.real import write_example_log

__all__ = [
    "ESTIMATORS", "IPS", "SNIPS", "DM", "DR", "SNDR", "SwitchDR", "DRos", "MIPS", "OffCEM", "Estimator",
    "mean_and_error", "effective_sample_size", "slope", "scales", "Form", "Groups", "believed_means", "Log",
    "LogError", "Defect", "read_log", "evaluate", "Estimate", "Evaluation", "Difference", "replay", "Replay",
    "contest", "Contest", "read_tree", "write_example_log",
]  # fmt: skip
