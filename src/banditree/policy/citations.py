"""BibTeX of the papers that algorithms come from, which are in ``papers.bib``: `bt.cite`."""

from __future__ import annotations

from importlib import resources

from banditree.errors import InvalidType
from banditree.policy.algorithms import parse_policy
from banditree.policy.policy import Policy

SOFTWARE = "banditree"  # the key for an algorithm that comes from no paper


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
    known = entries()
    return "\n\n".join(known[key] for key in kind.about.papers or (SOFTWARE,))


def entries() -> dict[str, str]:
    """Return all entries, by key."""
    text = resources.files("banditree.policy").joinpath("papers.bib").read_text("utf-8")
    each = text.strip().split("\n\n")
    return {entry[entry.index("{") + 1 : entry.index(",")]: entry for entry in each}
