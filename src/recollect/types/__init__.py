"""The types of Recollect as frozen values, one module per part of the system."""
