"""What scripts catch. Nothing raises these but a subclass of the user's own."""

from ragstone.errors import RagstoneError

RagasException = RagstoneError


class RagasOutputParserException(RagasException):
    """A reply could not be read: here such a sample is NaN."""


class LLMDidNotFinishException(RagasException):
    """A reply was cut off: here such a sample is NaN."""
