"""Stored trials → findings: verdicts, comparisons, settings to run, sentences. Prints nothing."""
