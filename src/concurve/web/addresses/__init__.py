"""The addresses of the site, a module for each part: what answers them, and nothing else.

Each module has ``routes(site)``; :mod:`concurve.web.app` puts them together.
"""
