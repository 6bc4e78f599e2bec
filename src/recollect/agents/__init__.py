"""Agents that live in a store: a durable inbox, a loop of model and tools, a life with an end.

`system.py` is what a host embeds; `memory_agent.py` is the one agent every worker can run.
"""
