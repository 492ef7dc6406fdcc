"""Monitoring a running reference server: readings of its counters, and their differences."""
