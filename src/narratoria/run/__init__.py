"""How calls and plans run: the pipeline, the plan executor, and what can be known of a plan before."""
