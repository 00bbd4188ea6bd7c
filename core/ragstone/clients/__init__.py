"""Judges and embedders that are reached over a network."""

from ragstone.clients.access import AnswerError
from ragstone.clients.checkers import MiniCheck
from ragstone.clients.compatible import OpenAICompatible
from ragstone.clients.decisions import OpenAIDecisions, SystemOne

__all__ = ["AnswerError", "MiniCheck", "OpenAICompatible", "OpenAIDecisions", "SystemOne"]
