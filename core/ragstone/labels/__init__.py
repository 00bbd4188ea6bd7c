"""Calibration: what a judge's probabilities mean by your own labels."""

from ragstone.labels.calibration import Calibration, CalibrationError

__all__ = ["Calibration", "CalibrationError"]
