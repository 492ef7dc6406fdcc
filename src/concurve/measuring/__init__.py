"""From a plan to stored trials: drives an engine by the protocol and keeps every trial of a run."""
