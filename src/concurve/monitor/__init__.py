"""Watching a running reference server: readings of its counters, and what lies between two."""
