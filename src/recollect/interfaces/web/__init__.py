"""The web pages: show people what memory holds, with sources and reasons, and let them edit it."""
