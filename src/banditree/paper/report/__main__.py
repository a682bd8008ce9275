"""Copy claims and headline pictures to the docs: ``python -m banditree.paper.report REPRODUCTION DOCS [MORE]``.

MORE is the folder of a reproduction with more seeds.
"""

from __future__ import annotations

import sys

from banditree.errors import BanditreeError
from banditree.paper.report import update_docs


def main(arguments: list[str]) -> int:
    """Run the command; return the exit code: 0, or 2 after an error message."""
    if len(arguments) not in (2, 3):
        print("usage: python -m banditree.paper.report REPRODUCTION DOCS [MORE]", file=sys.stderr)
        return 2
    try:
        written = update_docs(*arguments)
    except (BanditreeError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    print(*written, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
