"""Jobs of which people are told while workers are killed and receivers come and go.

Run with `python -m tests.faults.notify_storm`.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from mainspring import Email, Mainspring, Webhook
from mainspring.model.channel import Channel
from mainspring.model.notice import EMAIL, WEBHOOK
from mainspring.notify import verify
from mainspring.store import open_store
from tests.faults.both_stores import on_both_stores
from tests.faults.transaction_storm import at_work, on_trial
from tests.faults.workers import Workers, let_finish
from tests.support.mailbox import Mailbox, mail_server
from tests.support.waiting import until

LEASE = "1500ms"


@dataclass(frozen=True)
class Account:
    """What a storm came to. What arrived twice has the same id; what has no job was told of by nobody."""

    jobs: int
    hooks: int
    mails: int
    missing: int
    forged: int
    strange: int
    set_aside: int
    repeated: int
    kills: int
    restarts: int

    @property
    def balanced(self) -> bool:
        expected = self.jobs, len(range(0, self.jobs, 3))
        return (self.hooks, self.mails) == expected and not (
            self.missing or self.forged or self.strange or self.set_aside
        )


@dataclass
class Receiver:
    """A web server that goes away and comes back on the same port, and does not always answer."""

    port: int = 0
    got: list[tuple[str, bool, dict[str, object]]] = field(default_factory=list)

    @contextmanager
    def listening(self) -> Iterator[None]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                genuine = verify("old", dict(self.headers.items()), body)
                receiver.got.append((self.headers["Mainspring-Id"], genuine, json.loads(body)))
                if random.random() < 0.2:
                    return  # it was taken, and nobody hears of it
                self.send_response(200 if random.random() < 0.8 else 503)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        with ThreadingHTTPServer(("127.0.0.1", self.port), Handler) as server:
            self.port = server.server_port
            serving = threading.Thread(target=server.serve_forever, args=(0.01,))
            serving.start()
            try:
                yield
            finally:
                server.shutdown()
                serving.join()


def storm(url: str, *, jobs: int = 60, kills: int = 4, workers: int = 2) -> Account:
    """Enqueue *jobs* in parts, and with each part kill a worker and restart those who are told."""
    open_store(url).close()
    app = Mainspring(url)
    receiver, boxes = Receiver(), list[Mailbox]()
    with ExitStack() as listening:
        listening.enter_context(receiver.listening())
        boxes.append(listening.enter_context(mail_server()))
        hook = Webhook(f"http://127.0.0.1:{receiver.port}/", on=["success", "failure"], secret=["new", "old"])
        channels: list[Channel] = [hook, Email("ops@example.org", on="failure")]
        command = ["-m", "mainspring", "worker", "--app=tests.faults.notify_tasks:app", f"--lease={LEASE}"]
        processes = Workers(workers, [*command, "--concurrency=4", "--log-level=error"], _environment(url, boxes[0]))
        with processes.running():
            for part in range(kills):
                until(lambda: at_work(app, processes.alive[0].pid) and not on_trial(url))
                for number in range(part, jobs, kills):
                    app.enqueue("work", args=[number], notify=channels)
                time.sleep(random.uniform(0, 0.3))
                processes.kill()
                listening.close()
                processes.start()
                time.sleep(random.uniform(0, 0.3))
                listening.enter_context(receiver.listening())
                boxes.append(listening.enter_context(mail_server(port=boxes[0].port)))
            let_finish(app)
    account = _account(app, jobs, receiver, boxes, processes.kills)
    app.close()
    return account


def _environment(url: str, mailbox: Mailbox) -> dict[str, str]:
    return {
        "STORM_URL": url,
        "MAINSPRING_OUTBOUND_ALLOW": "127.0.0.1",
        "MAINSPRING_SMTP": mailbox.url,
        "MAINSPRING_MAIL_FROM": "jobs@example.org",
    }


def _account(app: Mainspring, jobs: int, receiver: Receiver, boxes: list[Mailbox], kills: int) -> Account:
    stored = {task: {str(job.id) for job in app.jobs(task=task, limit=10_000)} for task in (WEBHOOK, EMAIL)}
    hooks = Counter(hook for hook, _, _ in receiver.got)
    mails = Counter(str(mail["Mainspring-Id"]) for box in boxes for mail in box.mails)
    told = Counter(body["job_id"] for body in {hook: body for hook, _, body in receiver.got}.values())
    finished = app.jobs(task="work", limit=10_000)
    return Account(
        jobs=jobs,
        hooks=len(hooks),
        mails=len(mails),
        missing=len((stored[WEBHOOK] - hooks.keys()) | (stored[EMAIL] - mails.keys())),
        forged=sum(not genuine or body["id"] != hook for hook, genuine, body in receiver.got),
        strange=len((hooks.keys() - stored[WEBHOOK]) | (mails.keys() - stored[EMAIL]))
        + sum(told[str(job.id)] != 1 for job in finished),
        set_aside=sum(job.refresh().losses >= 3 for job in finished),
        repeated=sum((hooks + mails).values()) - len(hooks) - len(mails),
        kills=kills,
        restarts=len(boxes) - 1,
    )


if __name__ == "__main__":
    on_both_stores(storm)
