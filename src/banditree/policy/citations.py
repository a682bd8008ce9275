"""BibTeX of the papers that algorithms come from: `bt.cite`."""

from __future__ import annotations

from banditree.errors import InvalidType
from banditree.policy.algorithms import parse_policy
from banditree.policy.policy import Policy

ENTRIES = {
    "carlsson2021": """@inproceedings{carlsson2021,
  title = {Thompson Sampling for Bandits with Clustered Arms},
  author = {Carlsson, Emil and Dubhashi, Devdatt and Johansson, Fredrik D.},
  booktitle = {Proceedings of the Thirtieth International Joint Conference on Artificial Intelligence (IJCAI-21)},
  year = {2021},
  doi = {10.24963/ijcai.2021/305}
}""",
    "thompson1933": """@article{thompson1933,
  title = {On the Likelihood that One Unknown Probability Exceeds Another in View of the Evidence of Two Samples},
  author = {Thompson, William R.},
  journal = {Biometrika},
  volume = {25},
  number = {3/4},
  pages = {285--294},
  year = {1933},
  doi = {10.1093/biomet/25.3-4.285}
}""",
    "auer2002": """@article{auer2002,
  title = {Finite-time Analysis of the Multiarmed Bandit Problem},
  author = {Auer, Peter and Cesa-Bianchi, Nicol{\\`o} and Fischer, Paul},
  journal = {Machine Learning},
  volume = {47},
  pages = {235--256},
  year = {2002},
  doi = {10.1023/A:1013689704352}
}""",
    "pandey2007": """@inproceedings{pandey2007,
  title = {Multi-armed Bandit Problems with Dependent Arms},
  author = {Pandey, Sandeep and Chakrabarti, Deepayan and Agarwal, Deepak},
  booktitle = {Proceedings of the 24th International Conference on Machine Learning},
  year = {2007},
  doi = {10.1145/1273496.1273587}
}""",
    "bouneffouf2019": """@inproceedings{bouneffouf2019,
  title = {Optimal Exploitation of Clustering and History Information in Multi-armed Bandit},
  author = {Bouneffouf, Djallel and Parthasarathy, Srinivasan and Samulowitz, Horst and Wistuba, Martin},
  booktitle = {Proceedings of the Twenty-Eighth International Joint Conference on Artificial Intelligence (IJCAI-19)},
  year = {2019}
}""",
    "kocsis2006": """@inproceedings{kocsis2006,
  title = {Bandit Based {Monte-Carlo} Planning},
  author = {Kocsis, Levente and Szepesv{\\'a}ri, Csaba},
  booktitle = {Machine Learning: ECML 2006},
  year = {2006},
  doi = {10.1007/11871842_29}
}""",
    "zhao2019": """@inproceedings{zhao2019,
  title = {Fast Reconfigurable Antenna State Selection with Hierarchical {Thompson} Sampling},
  author = {Zhao, Tianchi and Li, Ming and Poloczek, Matthias},
  booktitle = {IEEE International Conference on Communications (ICC)},
  year = {2019}
}""",
    "agrawal2013": """@inproceedings{agrawal2013,
  title = {{Thompson} Sampling for Contextual Bandits with Linear Payoffs},
  author = {Agrawal, Shipra and Goyal, Navin},
  booktitle = {Proceedings of the 30th International Conference on Machine Learning},
  year = {2013}
}""",
    "li2010": """@inproceedings{li2010,
  title = {A Contextual-Bandit Approach to Personalized News Article Recommendation},
  author = {Li, Lihong and Chu, Wei and Langford, John and Schapire, Robert E.},
  booktitle = {Proceedings of the 19th International Conference on World Wide Web},
  year = {2010},
  doi = {10.1145/1772690.1772758}
}""",
    "hong2022": """@inproceedings{hong2022,
  title = {Hierarchical {Bayesian} Bandits},
  author = {Hong, Joey and Kveton, Branislav and Zaheer, Manzil and Ghavamzadeh, Mohammad},
  booktitle = {Proceedings of the 25th International Conference on Artificial Intelligence and Statistics},
  year = {2022}
}""",
}

SOFTWARE = """@software{banditree,
  title = {banditree: bandits on trees of arms},
  author = {{the banditree authors}},
  note = {The algorithm is described in docs/adaptive.md}
}"""


def cite(policy: type[Policy] | Policy | str) -> str:
    """Return BibTeX of what to cite for an algorithm: its class, its name, or a policy.

    >>> import banditree as bt
    >>> print(bt.cite(bt.UCB1).splitlines()[0])
    @article{auer2002,
    """
    kind: object = parse_policy(policy).kind if isinstance(policy, str) else policy
    kind = type(kind) if isinstance(kind, Policy) else kind
    if not (isinstance(kind, type) and issubclass(kind, Policy)):
        raise InvalidType(f"{policy!r:.60} is not an algorithm; give a class such as bt.TSC, or its name")
    return "\n\n".join(ENTRIES[key] for key in kind.about.papers) or SOFTWARE
