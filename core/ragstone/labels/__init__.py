"""People's labels: what they say of a judge, and what people would say of all samples."""

from ragstone.labels.calibration import Calibration, CalibrationError
from ragstone.labels.estimates import Estimate, corrected_difference, corrected_mean
from ragstone.report.corrections import ByLabels, Correction, Corrections, Link, Slice

__all__ = [
    "ByLabels",
    "Calibration",
    "CalibrationError",
    "Correction",
    "Corrections",
    "Estimate",
    "Link",
    "Slice",
    "corrected_difference",
    "corrected_mean",
]
