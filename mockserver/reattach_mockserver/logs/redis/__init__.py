"""A log on Redis Streams that several replicas share; `log.py` is where to begin."""
