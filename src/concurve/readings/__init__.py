"""One record → named figures, and whether the machine was ours while they were taken. Pure."""
