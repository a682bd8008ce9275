"""Decisions over HTTP: a log of numbered events is the truth, and the policy is a fold over it.

From the bottom up: ``events`` and ``traffic``, ``settings``, the ``state`` that events add up to, the logs
(``store_sqlite``, ``store_postgres``), what a request becomes (``commands``), the one thread that decides and writes
(``engine``), and the HTTP side (``app`` and what it uses).
"""
