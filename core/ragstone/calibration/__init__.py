"""Calibration: what a judge's probabilities mean by your own labels."""

from ragstone.calibration.calibration import Calibration, CalibrationError

__all__ = ["Calibration", "CalibrationError"]
