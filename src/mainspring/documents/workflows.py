"""A workflow as programs are told of it."""

from __future__ import annotations

from mainspring.documents.jobs import job_document
from mainspring.documents.values import Told, read, seconds_of
from mainspring.keys import Keyring
from mainspring.model.job import Job
from mainspring.model.picture import Counts, Node, Picture


def workflow_document(job: Job, keys: Keyring, counts: Counts) -> dict[str, object]:
    return {**job_document(job, keys), "counts": counts_document(counts)}


def node_document(node: Node) -> dict[str, object]:
    return {
        "id": str(node.id),
        "task": node.task,
        "kind": node.kind,
        "state": node.state,
        "standing": node.standing,
        "took_seconds": None if node.took is None else node.took.total_seconds(),
        "parents": [str(parent) for parent in node.parents],
        "counts": counts_document(node.counts),
        "why": node.why,
    }


def picture_document(picture: Picture) -> dict[str, object]:
    return {
        "id": str(picture.id),
        "task": picture.task,
        "state": picture.state,
        "standing": picture.standing,
        "kind": picture.kind,
        "counts": counts_document(picture.counts),
        "nodes": [node_document(node) for node in picture.nodes],
    }


def picture_of(told: Told) -> Picture:
    nodes = [{**node, "took": seconds_of(node["took_seconds"])} for node in told["nodes"]]
    return read({**told, "nodes": nodes}, Picture)


def counts_document(counts: Counts) -> dict[str, int]:
    return {state.value: count for state, count in sorted(counts.items())}
