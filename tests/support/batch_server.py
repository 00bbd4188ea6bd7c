"""A real HTTP server on loopback with OpenAI's batch endpoint: files and batches, beside what `OpenAIServer` speaks.

    with BatchServer(lambda request: "yes") as server:
        ProviderBatch(OpenAICompatible("any", base_url=server.url), folder=...)

The given function answers each request, in a batch or asked directly, as for `OpenAIServer`. How batches go:

- `looks`: how often a batch is looked at before it has ended;
- `ending(number)`: the status in which the batch ends: "completed"; "expired" or "cancelled", with half of its requests
  answered; a tuple ("failed", code, message), with none;
- `lines(number, output, errors)`: both files' lines as they will be, to be spoiled in place;
- `before_answer(method, path, server)`: is called when a request has taken effect and is not answered yet; what it returns
  in place of None is answered instead (an `Answer`, or `CLOSE`).

Output lines come in another order than the requests stood in.
"""

import json
import random
import re
import threading
from collections import Counter
from collections.abc import Callable
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any

from .openai_server import CLOSE, Answer, OpenAIServer, _Handler, chat, error

PAGE = 2


class BatchServer(OpenAIServer):
    def __init__(self, reply: Callable[[dict[str, Any]], Any], *, looks: int = 1) -> None:
        super().__init__(reply)
        self._server.RequestHandlerClass = _BatchHandler
        self.looks = looks
        self.ending: Callable[[int], Any] = lambda number: "completed"
        self.lines: Callable[[int, list[Any], list[Any]], None] = lambda number, output, errors: None
        self.before_answer: Callable[[str, str, BatchServer], Any] = lambda method, path, server: None
        self.lists_batches = True
        self.files: dict[str, bytes] = {}
        self.uploads: list[bytes] = []
        self.batches: list[dict[str, Any]] = []
        self.ran: Counter[str] = Counter()  # custom ids of requests that a model was run on
        self.direct: list[dict[str, Any]] = []
        self.log: list[tuple[str, str]] = []
        self.headers: list[dict[str, str]] = []  # names in lower case
        self._looked: Counter[str] = Counter()
        self._state = threading.RLock()

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The lines of all uploaded files."""
        return [json.loads(line) for content in self.uploads for line in content.splitlines()]

    def batch_answer(self, method: str, path: str, content: bytes, content_type: str) -> Any:
        path, _, query = path.removeprefix("/v1").partition("?")
        with self._state:
            self.log.append((method, path))
            answer = self._answered(method, path, query, content, content_type)
        instead = self.before_answer(method, path, self)
        return answer if instead is None else instead

    def _answered(self, method: str, path: str, query: str, content: bytes, content_type: str) -> Any:
        if (method, path) == ("POST", "/files"):
            return self._upload(content, content_type)
        if (method, path) == ("POST", "/batches"):
            return self._create(json.loads(content))
        if (method, path) == ("GET", "/batches"):
            return self._list(query) if self.lists_batches else error(404, "no such path")
        if found := re.fullmatch(r"/batches/(\w+)", path):
            return self._look(found[1])
        if found := re.fullmatch(r"/files/(\w+)/content", path):
            held = self.files.get(found[1])
            return error(404, "no such file") if held is None else Answer(held)
        if path == "/chat/completions":
            self.direct.append(json.loads(content))
            return self.reply(json.loads(content))
        if path == "/embeddings":
            return self.reply(json.loads(content))
        return error(404, f"no such path: {path}")

    def _upload(self, content: bytes, content_type: str) -> Any:
        message = BytesParser(policy=HTTP).parsebytes(f"Content-Type: {content_type}\r\n\r\n".encode() + content)
        parts = {part.get_param("name", header="content-disposition"): part for part in message.iter_parts()}
        assert parts["purpose"].get_content().strip() == "batch"
        self.uploads.append(parts["file"].get_payload(decode=True))
        return {"id": self._hold(self.uploads[-1]), "object": "file", "purpose": "batch"}

    def _hold(self, content: bytes) -> str:
        name = f"file_{len(self.files) + 1}"
        self.files[name] = content
        return name

    def _create(self, given: dict[str, Any]) -> Any:
        assert given["endpoint"] == "/v1/chat/completions"
        assert given["completion_window"] == "24h"
        if given["input_file_id"] not in self.files:
            return error(400, "no such input file")
        name = f"batch_{len(self.batches) + 1}"
        self.batches.append(
            {
                "id": name,
                "object": "batch",
                "status": "validating",
                "output_file_id": None,
                "error_file_id": None,
                **given,
            }
        )
        return self.batches[-1]

    def _list(self, query: str) -> Any:
        newest_first = self.batches[::-1]
        after = re.search(r"after=(\w+)", query)
        start = 1 + [batch["id"] for batch in newest_first].index(after[1]) if after else 0
        page = newest_first[start : start + PAGE]
        return {"object": "list", "data": page, "has_more": start + PAGE < len(newest_first)}

    def _look(self, name: str) -> Any:
        batch = next((batch for batch in self.batches if batch["id"] == name), None)
        if batch is None:
            return error(404, "no such batch")
        self._looked[name] += 1
        if self._looked[name] < self.looks:
            batch["status"] = "in_progress"
        elif batch["status"] in ("validating", "in_progress"):
            self._end(batch)
        return batch

    def _end(self, batch: dict[str, Any]) -> None:
        number = self.batches.index(batch) + 1
        ending = self.ending(number)
        if isinstance(ending, tuple):
            batch["status"] = ending[0]
            batch["errors"] = {"object": "list", "data": [{"code": ending[1], "message": ending[2], "line": None}]}
            return
        lines = [json.loads(line) for line in self.files[batch["input_file_id"]].splitlines()]
        run = lines if ending == "completed" else lines[: len(lines) // 2]
        output: list[Any] = []
        errors: list[Any] = []
        for line in run:
            self.ran[line["custom_id"]] += 1
            answer = self.reply(line["body"])
            answer = chat(answer) if isinstance(answer, str) else answer
            answer = answer if isinstance(answer, Answer) else Answer(answer)
            response = {"status_code": answer.status, "request_id": "r", "body": answer.body}
            told = {"id": "b", "custom_id": line["custom_id"], "response": response, "error": None}
            (output if answer.status == 200 else errors).append(told)
        if ending == "expired":
            for line in lines[len(run) :]:
                why = {"code": "batch_expired", "message": "This request could not be executed before it expired."}
                errors.append({"id": "b", "custom_id": line["custom_id"], "response": None, "error": why})
        random.Random(number).shuffle(output)
        self.lines(number, output, errors)
        batch["status"] = ending
        batch["request_counts"] = {"total": len(lines), "completed": len(output), "failed": len(errors)}
        batch["output_file_id"] = self._file(output)
        batch["error_file_id"] = self._file(errors)

    def _file(self, lines: list[Any]) -> str | None:
        if not lines:
            return None
        written = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
        return self._hold(b"\n".join(written) + b"\n")


class _BatchHandler(_Handler):
    def do_GET(self) -> None:  # noqa: N802 - the base class's name
        self._handled(b"")

    def do_POST(self) -> None:  # noqa: N802 - the base class's name
        self._handled(self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def _handled(self, content: bytes) -> None:
        server = self.server.owner
        assert isinstance(server, BatchServer)
        server.headers.append({name.lower(): value for name, value in self.headers.items()})
        answer = server.batch_answer(self.command, self.path, content, self.headers.get("Content-Type", ""))
        self._answer(answer)


__all__ = ["CLOSE", "PAGE", "Answer", "BatchServer", "chat", "error"]
