"""What is measured, inside a worker: one module a job, each with ``run(contestant, **arguments) -> numbers``."""
