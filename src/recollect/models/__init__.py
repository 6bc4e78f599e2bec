"""Language models behind one small protocol: any OpenAI-compatible server, and Anthropic."""
