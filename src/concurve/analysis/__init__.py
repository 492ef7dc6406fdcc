"""Stored trials → what a run says: verdicts, comparisons, settings to run, words. Never shows."""
