"""What claims are about: the one grouping of facts into topics, for whoever writes them down."""
