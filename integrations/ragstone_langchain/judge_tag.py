"""The mark of a judge's runs; apart from `unseen`, which takes long to import."""

JUDGE_TAG = "ragstone:judge"
"""Stands on every run of a judge, so that handlers can tell it from the app's."""
