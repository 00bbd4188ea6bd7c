"""What people said of answers of live traffic, as it is kept beside the outcomes."""

from pydantic import BaseModel, ConfigDict


class Feedback(BaseModel):
    """A person's feedback on an answer.

    Attributes:
        sample_id: The sample's id.
        value: "thumbs_up", "thumbs_down", or a word of the app's own.
        comment: The person's comment.
        at: When, in seconds since 1970 (UTC). The latest one of a sample counts.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    sample_id: str
    value: str
    comment: str | None = None
    at: float
