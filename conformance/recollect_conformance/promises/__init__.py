"""The cases, one module per part of the store, in the order that `suite.CHAPTERS` gives them."""
