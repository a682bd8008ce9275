"""Write structured logs: one JSON object per line on stderr."""

from __future__ import annotations

import json
import sys
import traceback
from typing import Any

from banditree.service.events import iso, now


def say(event: str, *, level: str = "info", **fields: Any) -> None:
    """Write one line."""
    line = {"at": iso(now()), "level": level, "event": event} | fields
    print(json.dumps(line, ensure_ascii=False, default=str), file=sys.stderr, flush=True)


def failure(where: str, error: BaseException) -> None:
    """Write an unexpected error with its traceback, which clients never see."""
    say("failure", level="error", where=where, error=repr(error), trace="".join(traceback.format_exception(error)))
