"""The definition of a tool: its context, retry policy, deadline, schema and contract. No I/O."""
