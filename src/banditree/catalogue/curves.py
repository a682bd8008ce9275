"""Regret curves as SVG text, for the page: they scale, print, and follow the reader's light or dark setting."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np

from banditree.catalogue.sentences import short
from banditree.plots.style import Look, looks, tint
from banditree.simulation.runs import Runs

WIDTH, HEIGHT = 640, 340
LEFT, RIGHT, TOP, BOTTOM = 72, 12, 12, 50
DASHES = {"-": "", "--": "6 4", ":": "2 3", "-.": "8 3 2 3"}


def curves(runs: Runs, names: Sequence[str]) -> str:
    """Mean regret of each policy over time, with a band of two standard errors, and a legend."""
    highest = max(float(runs.regret[name].mean(axis=0).max()) for name in names) or 1.0
    horizon, top = float(runs.times[-1]), 1.08 * highest

    def x(time: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * time / horizon

    def y(regret: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * regret / top

    label = "Regret over decisions: " + ", ".join(names)
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{html.escape(label)}" class="curves">']
    for tick in _ticks(top):
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{short(tick)}</text>')
    for tick in _ticks(horizon):
        anchor = "end" if x(tick) > WIDTH - 40 else "middle"
        parts.append(f'<text x="{x(tick):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="{anchor}">{short(tick)}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 4}" text-anchor="middle">decisions</text>')
    middle_y = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(f'<text transform="rotate(-90)" x="{-middle_y}" y="14" text-anchor="middle">regret (rewards)</text>')
    times = runs.times.tolist()
    styles = {name: _style(look) for name, look in looks(names).items()}
    for name in names:
        regret = runs.regret[name]
        mean = regret.mean(axis=0)
        error = 2 * regret.std(axis=0, ddof=1) / np.sqrt(len(regret))
        upper = [(x(t), y(min(v, top))) for t, v in zip(times, (mean + error).tolist(), strict=True)]
        lower = [(x(t), y(max(v, 0.0))) for t, v in zip(times, (mean - error).tolist(), strict=True)]
        middle = [(x(t), y(v)) for t, v in zip(times, mean.tolist(), strict=True)]
        parts.append(f'<polygon class="look band" {styles[name]} points="{_points(upper + lower[::-1])}"/>')
        parts.append(f'<polyline class="look line" {styles[name]} points="{_points(middle)}"/>')
    parts.append("</svg>")
    keys = "".join(
        f'<span class="key"><svg viewBox="0 0 28 4" aria-hidden="true"><line class="look line" {styles[name]} x2="28" '
        f'y1="2" y2="2"/></svg>{html.escape(name)}</span>'
        for name in names
    )
    return "".join(parts) + f'<p class="legend">{keys}</p>'


def _style(look: Look) -> str:
    """A policy's look in pictures, and a paler colour for readers who like it dark."""
    colors = f'style="--light:{look.color};--dark:{tint(look.color, 0.45)}"'
    return f'{colors} stroke-dasharray="{DASHES[look.dashes]}"' if DASHES[look.dashes] else colors


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _ticks(top: float) -> list[float]:
    """From 0, four to eight round numbers up to ``top``."""
    rough = top / 5
    power = 10 ** np.floor(np.log10(rough))
    step = float(next(round_number * power for round_number in (1, 2, 2.5, 5, 10) if round_number * power >= rough))
    return [i * step for i in range(int(top / step) + 1)]
