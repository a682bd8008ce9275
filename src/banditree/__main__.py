"""``python -m banditree`` is the ``banditree`` command."""

from banditree.cli.main import main

if __name__ == "__main__":
    main()
