"""Formulas as MathML, which browsers show by themselves: the site asks no other host for a script."""

from __future__ import annotations

import re
from typing import Any

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml

SIZES = re.compile(r"\\[bB]igg?[lrm]?(?![a-zA-Z])")  # of brackets, which grow by themselves in MathML
DOTS = re.compile(r"\\dots(?![a-zA-Z])")  # which docutils does not know; they are between signs, as in a sum


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def mathml(formula: str, *, block: bool) -> str:
    """Convert a formula from TeX."""
    return str(tex2mathml(DOTS.sub(r"\\cdots", SIZES.sub("", formula)), as_block=block))


def _inline(translator: Any, node: Any) -> None:
    translator.body.append(mathml(node.astext(), block=False))
    raise SkipNode


def _block(translator: Any, node: Any) -> None:
    translator.body.append(f'<div class="math">{mathml(node.astext(), block=True)}</div>')
    raise SkipNode
