"""Who looks at what Recollect does, and in whose name it is done: never at what anybody said."""
