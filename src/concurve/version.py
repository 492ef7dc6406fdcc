"""Which version of Concurve this is."""

__version__ = "0.1.0"
