"""Study → what is measured: cells and trial specs, which trial comes next, how long it takes.

Pure: only :mod:`concurve.planning.forecast` reads a store, and nothing here runs a program. So
:mod:`concurve.analysis` replays a stored run without what measured it.
"""
