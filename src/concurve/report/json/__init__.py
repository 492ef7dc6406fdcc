"""Exports for programs, each described by a schema of ``schema/``; a module an export."""
