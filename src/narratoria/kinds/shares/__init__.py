"""Fair shares of the processes of tools: places, quotas, and turns that are refused while there is too much to do."""
