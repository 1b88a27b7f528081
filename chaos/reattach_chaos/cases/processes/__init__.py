"""The processes of a case's clients: how they begin, what they say, how they end."""
