"""The window of document 002: the picture of the Mandelbrot set, computed by the measured kernels.

:mod:`~concurve.web.window.setting` has what can be chosen and the command line that it means,
:mod:`~concurve.web.window.picture` runs it and passes on its lines. What stands beside the picture
comes from the kernel (:mod:`~concurve.web.window.reported`) and from the system:
:mod:`~concurve.web.window.threads`, :mod:`~concurve.web.window.cpus`.
:mod:`~concurve.web.window.sweep` makes a measurement of a setting.
"""
