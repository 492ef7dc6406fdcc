"""The views of a run: :class:`concurve.findings.run.Findings` in, text, tables and pictures out.

Nothing here computes. A view formats what stands in the findings and scales units, both by
:mod:`concurve.report.format`, and heavy libraries are imported by the functions that draw.
"""
