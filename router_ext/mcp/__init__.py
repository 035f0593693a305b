"""The router's MCP server: tools for assistants, each one request of the admin API."""
