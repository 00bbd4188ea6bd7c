"""Two versions of an app over a museum's handbook, as they answered the same questions."""

HANDBOOK = {
    "hours": "The museum opens at ten in the morning from Tuesday to Sunday. It is closed on Mondays. On Thursdays it "
    "stays open until nine in the evening.",
    "tickets": "A ticket costs 12 euros for adults. Children under twelve enter free. The audio guide costs 4 euros "
    "more.",
    "photos": "Photographs are allowed without flash. Tripods need a written permit from the office. Filming is not "
    "allowed.",
    "cafe": "The cafe is on the ground floor next to the garden. It serves lunch from noon to three. Dogs may come "
    "into the garden but not into the cafe.",
    "tours": "Guided tours start at the main stairs at eleven and at three. A tour takes one hour. Groups of more than "
    "ten people must book a tour in advance.",
}

# Question, the paragraph that answers it, the answers of the two versions.
ASKED = (
    (
        "How much does a ticket cost for adults?",
        "tickets",
        "A ticket costs 12 euros.",
        "A ticket costs 12 euros for adults.",
    ),
    ("Is the museum open on Mondays?", "hours", "Yes, it is.", "No, the museum is closed on Mondays."),
    (
        "Until when is it open on Thursdays?",
        "hours",
        "At ten in the morning.",
        "It stays open until nine on Thursdays.",
    ),
    ("May I use a tripod?", "photos", "I do not know.", "A tripod needs a written permit from the office."),
    ("May dogs come into the cafe?", "cafe", "Dogs may come.", "Dogs may not come into the cafe."),
    ("When is lunch served?", "cafe", "Lunch is served at noon.", "Lunch is served from noon to three."),
    ("How long does a guided tour take?", "tours", "Tours start at eleven.", "A guided tour takes one hour."),
    ("Where do guided tours start?", "tours", "I do not know.", "Guided tours start at the main stairs."),
    ("What does the audio guide cost?", "tickets", "It depends on age.", "The audio guide costs 4 euros more."),
    ("May I film?", "photos", "Photographs are allowed.", "Filming is not allowed."),
)


def samples(version: int) -> list[dict[str, object]]:
    """Return what a version of the app was asked, retrieved and answered. The first one retrieves twice as much."""
    rows: list[dict[str, object]] = []
    for i, (question, topic, *answers) in enumerate(ASKED):
        contexts = (
            [HANDBOOK[topic]] if version else [HANDBOOK[topic], HANDBOOK["tours" if topic != "tours" else "cafe"]]
        )
        rows.append(
            {"id": f"q{i}", "user_input": question, "retrieved_contexts": contexts, "response": answers[version]}
        )
    return rows
