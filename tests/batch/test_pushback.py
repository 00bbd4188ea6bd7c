"""What exceptions of all kinds of clients say of slowing down."""

from ragstone.judging.refusals import read_refusal


class Error(Exception):
    def __init__(self, **facts):
        super().__init__("no")
        self.__dict__.update(facts)


class Response:
    def __init__(self, status_code=200, **headers):
        self.status_code = status_code
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def answered(status=429, **headers):
    return {"status_code": status, "response": Response(**headers)}


TAIL = ValueError()
TAIL.__cause__ = TAIL
OUTER = RuntimeError("the judge failed")
OUTER.__cause__ = ValueError()
OUTER.__cause__.__cause__ = Error(**answered(retry_after="2"))
STATUSES = [
    *[({name: 503}, 0.0) for name in ("status_code", "status", "code", "http_status")],
    *[({"status_code": status}, 0.0) for status in (429, 500, 502, 503, 504, 529)],
    *[({"status_code": status}, None) for status in (400, 401, 501, "429", None, True)],
    *[({"status_code": 429, "code": code}, None) for code in ("insufficient_quota", "billing_hard_limit_reached")],
]
SECONDS = {"3": 3.0, " 1.5 ": 1.5, "-1": 0, "nan": 0, "inf": 0, "soon": 0, None: 0, "1" * 400: 0,
           "Wed, 21 Oct 2099 07:28:00 GMT": 0}  # fmt: skip
HEADERS = [
    *[(answered(retry_after=value), seconds) for value, seconds in SECONDS.items()],
    ({"response": Response(429, retry_after_ms="250", retry_after="1")}, 0.25),
    ({"status_code": 429, "response": Error(headers=object())}, 0.0),
    ({"status_code": 429, "response": "text"}, 0.0),
]


def test_what_is_waited_for():
    for facts, wait in [*STATUSES, *HEADERS]:
        assert read_refusal(Error(**facts)).wait == wait, facts
    assert (read_refusal(OUTER).wait, read_refusal(TAIL).wait) == (2.0, None)
