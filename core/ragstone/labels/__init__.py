"""People's labels: what they say of a judge, and what people would say of all samples."""

from ragstone.labels.calibration import Calibration, CalibrationError
from ragstone.labels.estimates import Estimate, corrected_difference, corrected_mean

__all__ = ["Calibration", "CalibrationError", "Estimate", "corrected_difference", "corrected_mean"]
