"""From a study to stored trials: the plan, the choice of the next trial, and the stored run."""
