"""Memory over the Model Context Protocol: a few tools on one space, over stdio or HTTP.

`tools` is what they do, `answers` what they say, `server` how they are offered and how they fail,
and the memory behind them; `stdio` and `http` carry the frames. Nothing here is imported before
`recollect mcp` runs.
"""
