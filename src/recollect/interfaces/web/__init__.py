"""The web page: what memory holds, from what and why, shown to people, who can change it."""
