"""A run's work as a workflow of somebody else's durable engine: `dbos.py`, `temporal.py`. Each needs an extra of its name."""
