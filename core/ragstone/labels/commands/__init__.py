"""The commands of people's labels: label, correct."""
