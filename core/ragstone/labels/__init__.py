"""People's labels: how good a judge is, and people's mean over all samples."""

from ragstone.labels.correct import corrected, corrected_comparison, corrected_pairs
from ragstone.labels.estimates import CorrectedEstimate, corrected_difference, corrected_mean
from ragstone.labels.corrections import ByLabels, Correction, Corrections
from ragstone.labels.label_file import LabelError

__all__ = [
    "ByLabels",
    "CorrectedEstimate",
    "Correction",
    "Corrections",
    "LabelError",
    "corrected",
    "corrected_comparison",
    "corrected_difference",
    "corrected_mean",
    "corrected_pairs",
]
