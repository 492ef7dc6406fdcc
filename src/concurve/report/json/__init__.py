"""Exports for programs. Each is described by a schema; :mod:`~concurve.report.json.export` is that of
a run."""
