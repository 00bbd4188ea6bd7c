"""Texts that the benchmarks share. Standard library only: the peers' environments have no ragstone."""

SOURCE = (
    "The 'coverage score' is calculated as the percentage of assessment questions for which both the summary and the "
    "original document provide a 'yes' answer. This method ensures that the summary not only includes key information "
    "from the original text but also accurately represents it. A higher coverage score indicates a more comprehensive "
    "and faithful summary, signifying that the summary effectively encapsulates the crucial points and details from "
    "the original content."
)
SUMMARY = (
    "The coverage score quantifies how well a summary captures and accurately represents key information from the "
    "original text, with a higher score indicating greater comprehensiveness."
)
QUESTION = "How is the coverage score calculated?"
FIVE = [str(i) for i in range(1, 6)]
