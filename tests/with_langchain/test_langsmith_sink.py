"""Outcomes as LangSmith's feedback: its real client, and a server on loopback that answers as LangSmith's API does."""

import json
import pickle
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit
from uuid import UUID, uuid4

import pytest
from langsmith import Client
from langsmith.utils import LangSmithError

from ragstone import Monitor, Sample, Score, Unscored
from ragstone.sinks import Record
from ragstone_langchain import LangSmithFeedbackSink

from ..core.test_errors import only_score  # noqa: TID252
