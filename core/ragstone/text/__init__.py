"""Texts into sentences, without losing a character: `split_sentences`."""

from ragstone.text.sentences import WINDOW, Sentence, Splitter, iter_sentences, language_of, languages, split_sentences

__all__ = ["WINDOW", "Sentence", "Splitter", "iter_sentences", "language_of", "languages", "split_sentences"]
