"""The findings of a run: the only input of every view.

The types stand here, the computation in :mod:`concurve.analysis`. Views do no arithmetic: what
they show is in these types.
"""
