"""From a study to stored trials: what is planned, which trial comes next, what is kept of a run."""
