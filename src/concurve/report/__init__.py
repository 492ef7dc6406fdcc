"""Findings as documents, and documents as text, pages and pictures.

:mod:`~concurve.report.sections` says once what a report holds, :mod:`~concurve.report.document` of
what it is made, the renderers show it. Nothing here computes: figures are formatted and units
scaled by :mod:`concurve.report.format`, and heavy libraries are imported by the functions that
draw.
"""
