"""The narrator that serves any catalogue of tools by meaning, without a model server."""
