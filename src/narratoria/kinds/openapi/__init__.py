"""Operations of OpenAPI documents, each a `Tool`. The HTTP client is loaded at the first call."""
