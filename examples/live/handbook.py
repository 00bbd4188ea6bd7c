"""What both apps know, and how they look it up: a museum's handbook, searched by shared words. No key needed."""

from words import share

HANDBOOK = (
    "The museum opens at ten in the morning from Tuesday to Sunday. It is closed on Mondays. On Thursdays it stays "
    "open until nine in the evening.",
    "A ticket costs 12 euros for adults. Children under twelve enter free. The audio guide costs 4 euros more.",
    "Photographs are allowed without flash. Tripods need a written permit from the office. Filming is not allowed.",
    "The cafe is on the ground floor next to the garden. It serves lunch from noon to three. Dogs may come into the "
    "garden but not into the cafe.",
    "Guided tours start at the main stairs at eleven and at three. A tour takes one hour. Groups of more than ten "
    "people must book a tour in advance.",
)
QUESTIONS = (
    "How much does a ticket cost for adults?",
    "Until when is the museum open on Thursdays?",
    "Where does the museum keep its dinosaurs?",
    "May dogs come into the cafe?",
    "When do guided tours start?",
    "Are photographs with flash allowed?",
)


def nearest(question: str, k: int = 2) -> list[str]:
    """Return the `k` paragraphs that share most words with a question."""
    return sorted(HANDBOOK, key=lambda text: -share(question, text))[:k]
