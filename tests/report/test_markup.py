"""The one place where text becomes markup."""

import html
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from ragstone.page.markup import Html, escape, tag, together


class Reader(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"])))
def test_text_comes_back_as_it_was(text):
    read = Reader(tag("p", text, title=text))
    assert read.tags == [("p", {"title": text})]
    assert read.text == text


@given(st.text())
def test_any_text_can_be_written_and_ends_nothing(text):
    found = escape(text)
    found.encode()
    assert not set(found) & set("<>\"'\x00")
    assert len(html.unescape(found)) == len(text)


def test_markup_is_escaped_once_and_no_text_twice():
    assert tag("p", tag("b", "<"), "<", Html("<i>")) == "<p><b>&lt;</b>&lt;<i></p>"
    assert together(["<", tag("b")]) == "&lt;<b></b>"
    # What is put together by hand is text again: the safe side.
    assert tag("p", f"{tag('b', 'x')}") == "<p>&lt;b&gt;x&lt;/b&gt;</p>"
    assert tag("p", tag("b", "x") + "<") == "<p>&lt;b&gt;x&lt;/b&gt;&lt;</p>"
