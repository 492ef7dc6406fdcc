"""``python -m concurve``: the same as ``concurve``."""

from concurve.cli import main

if __name__ == "__main__":
    main()
