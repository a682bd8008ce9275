"""``python -m banditree.paper.report reproduction docs [more]``: claims and headline pictures into the documentation.

``more`` is the folder of a reproduction with more seeds.
"""

from __future__ import annotations

import sys

from banditree.errors import BanditreeError
from banditree.paper.report import update_docs


def main(arguments: list[str]) -> int:
    """The exit code: 0, or 2 where something is wrong, with a sentence that says what."""
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
