"""A process that measures one contestant in its own environment: a line of JSON in, a line of JSON out.

All contestants are asked in turn, one at a time, so whatever the machine does meanwhile happens to all of them.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from importlib import import_module


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is not an answer
    warnings.simplefilter("ignore")
    contestant = import_module(sys.argv[1])
    for line in sys.stdin:
        request = json.loads(line)
        try:
            name = request["job"]
            job = import_module(name if "." in name else f"benchmarks.jobs.{name}")
            answer = job.run(contestant, **request["arguments"])
        except Exception as error:  # told to the parent, which reports it and goes on
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
