"""The context engine: what of a long conversation a model is shown, and what is summarised."""
