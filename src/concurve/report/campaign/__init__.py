"""The report of a campaign: a Software Test Document in the form of document 002."""
