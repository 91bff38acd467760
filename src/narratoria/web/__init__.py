"""The client: a page, the API behind it, and the server of both. Needs the extra `web`."""
