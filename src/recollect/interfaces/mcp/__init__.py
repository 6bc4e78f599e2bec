"""Memory over the Model Context Protocol: a few tools on one space, over stdio or HTTP.

`tools` implements them, `answers` formats their answers, `server` offers them over the SDK and
handles their errors, `stdio` and `http` are the transports. Nothing here is imported before
`recollect mcp` runs.
"""
