"""The commands of people's labels: choose, label, correct, calibrate."""
