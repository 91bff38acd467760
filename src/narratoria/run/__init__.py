"""Running calls and plans: the pipeline, the plan executor, and the checks of a plan before it runs."""
