"""One record → named figures, and whether other processes disturbed the trial. Pure."""
