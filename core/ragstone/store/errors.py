"""What a sink raises."""


class SinkError(Exception):
    """Records could not be kept, or an account could not be reached; the message says why and what to do."""
