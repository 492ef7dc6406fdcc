"""This machine: its facts, the programs on it, and the lock that keeps measurements apart."""
