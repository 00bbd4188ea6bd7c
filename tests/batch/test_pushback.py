"""What exceptions of all kinds of clients say of slowing down."""

import datetime
from email.utils import format_datetime

from ragstone.judging.refusals import read_refusal


class Error(Exception):
    def __init__(self, **facts):
        super().__init__("no")
        self.__dict__.update(facts)


class Response:
    def __init__(self, status_code=200, **headers):
        self.status_code = status_code
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def test_a_status_under_any_name():
    for name, status in zip(
        ("status_code", "status", "code", "http_status") * 2, (429, 500, 502, 503, 504, 529), strict=False
    ):
        assert read_refusal(Error(**{name: status})).wait == 0.0
    for status in (400, 401, 501, "429", None, True):
        assert read_refusal(Error(status_code=status)).wait is None


def test_retry_after_in_seconds():
    values = {"3": 3.0, " 1.5 ": 1.5, "-1": 0, "nan": 0, "inf": 0, "soon": 0, None: 0, "1" * 400: 0}
    for value, seconds in values.items():
        assert read_refusal(Error(status_code=429, response=Response(retry_after=value))).wait == seconds


def test_retry_after_as_a_date():
    later = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=90)
    wait = read_refusal(Error(status_code=503, response=Response(retry_after=format_datetime(later, usegmt=True)))).wait
    assert 60 < wait <= 90
    past = read_refusal(Error(status_code=503, response=Response(retry_after="Wed, 21 Oct 2015 07:28:00 GMT"))).wait
    assert past == 0.0


def test_milliseconds_go_before_seconds():
    assert read_refusal(Error(response=Response(429, retry_after_ms="250", retry_after="1"))).wait == 0.25


def test_the_exception_that_it_was_raised_from():
    outer = RuntimeError("the judge failed")
    outer.__cause__ = ValueError()
    outer.__cause__.__cause__ = Error(status_code=429, response=Response(retry_after="2"))
    assert read_refusal(outer).wait == 2.0


def test_a_chain_that_bites_its_tail():
    error = ValueError()
    error.__cause__ = error
    assert read_refusal(error).wait is None


def test_a_quota_that_is_used_up_is_not_waited_for():
    for code in ("insufficient_quota", "billing_hard_limit_reached"):
        assert read_refusal(Error(status_code=429, code=code)).wait is None


def test_odd_headers_are_no_trouble():
    assert read_refusal(Error(status_code=429, response=Error(headers=object()))).wait == 0.0
    assert read_refusal(Error(status_code=429, response="text")).wait == 0.0
