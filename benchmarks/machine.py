"""What the numbers were measured on."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

import banditree as bt


def describe() -> str:
    """Processor, system, Python, NumPy and engine, without the name of the machine."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return (
        f"{processor()}, {cores} cores, {platform.system()}, {python}, NumPy {version('numpy')}, "
        f"banditree {bt.__version__} ({bt.engine()} engine)"
    )


def processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
