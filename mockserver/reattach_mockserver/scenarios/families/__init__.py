"""What we understand of a recorded stream, one vendor's dialect a file."""
