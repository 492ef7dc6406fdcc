"""The tables of coverage.py, one module a subject."""
