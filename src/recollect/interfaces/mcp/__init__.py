"""Memory over the Model Context Protocol: a few tools on one space, over stdio or HTTP.

`reading` and `writing` are what the tools do, `server` is how they are offered and how they fail,
`stdio` and `http` carry the frames, `keeping` holds the memory behind them. Nothing here is
imported before `recollect mcp` runs.
"""
