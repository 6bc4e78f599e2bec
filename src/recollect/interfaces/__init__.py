"""The interfaces: command line, HTTP, MCP and web pages. They translate and never decide."""
