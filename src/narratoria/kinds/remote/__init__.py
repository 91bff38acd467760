"""Tools on the nodes of a cluster: the engine here, the process and its supervisor there."""
