"""The sections of a report: findings in, blocks of a document out.

Each module has a builder; :mod:`~concurve.report.sections.run` lists those of a run, and the report
of a campaign has the same ones for each of its runs. Nothing here computes: figures are formatted
by :mod:`concurve.report.format`.
"""
