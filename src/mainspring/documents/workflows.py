"""A workflow as programs are told of it."""

from __future__ import annotations

from mainspring.documents.jobs import job_document
from mainspring.keys import Keyring
from mainspring.model.job import Job
from mainspring.model.picture import Counts, Node


def workflow_document(job: Job, keys: Keyring, counts: Counts) -> dict[str, object]:
    return {**job_document(job, keys), "counts": counts_document(counts)}


def node_document(node: Node) -> dict[str, object]:
    return {
        "id": str(node.id),
        "task": node.task,
        "kind": node.kind,
        "state": node.state,
        "took_seconds": None if node.took is None else node.took.total_seconds(),
        "parents": [str(parent) for parent in node.parents],
        "counts": counts_document(node.counts),
        "why": node.why,
    }


def counts_document(counts: Counts) -> dict[str, int]:
    return {state.value: count for state, count in sorted(counts.items())}
