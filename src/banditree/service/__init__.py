"""Serve decisions over HTTP. The source of truth is a log of numbered events; the policy is computed from it.

From the bottom up: the ``events`` of the log, the ``settings``, the stores of the log (``store``, ``store_postgres``),
the ``state`` that is folded from events, the ``commands`` that requests become, the ``engine`` (the one thread that
decides and writes), and the HTTP side (``app`` and what it uses).
"""
