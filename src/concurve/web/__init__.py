"""The laboratory in a browser: ``concurve web``.

:mod:`~concurve.web.app` has the addresses, :mod:`~concurve.web.security` says who may ask for them,
:mod:`~concurve.web.pages` makes the pages. :mod:`~concurve.web.live` follows runs in the store, and
:mod:`~concurve.web.streams` tells browsers of them. :mod:`~concurve.web.measurements` starts and
stops runs: processes of their own, never this one. :mod:`~concurve.web.quiet` keeps this process
from disturbing what it shows.
"""
