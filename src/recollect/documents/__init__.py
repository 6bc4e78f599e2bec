"""The versioned tree of Markdown documents that memory lives in."""
