"""What a tool is: its definition, context, registry, retry policy, schema and contract. No I/O."""
