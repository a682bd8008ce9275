"""The contest: banditree's policies and other libraries on the same problems, in one run (`make contest`).

Every package plays in an environment of its own, so what its process imports here needs nothing but NumPy.
"""
