"""Workflows from JSON: nodes that name each other become jobs that depend on each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any, cast

from mainspring.api.channels import channels
from mainspring.api.documents import NodeRequest, WorkflowRequest
from mainspring.app import Mainspring
from mainspring.errors import InvalidPayload, InvalidValue, MainspringError, did_you_mean
from mainspring.model.graph import Node
from mainspring.task_handle import TaskHandle, Wishes
from mainspring.workflow import NamedWorkflow

RESULT = "$result"
"""The only name in an object that stands for the result of a node."""

_WISHES = ("queue", "priority", "run_after", "expires", "key", "fair")
_DEEPEST = 64


def built(app: Mainspring, wanted: WorkflowRequest) -> NamedWorkflow:
    """Return the workflow that *wanted* describes, not stored yet."""
    nodes = {node.id: node for node in wanted.nodes}
    if len(nodes) < len(wanted.nodes):
        raise InvalidValue("expected each node to have an id of its own, got one twice")
    workflow = app.workflow(wanted.name, key=wanted.key, notify=channels(wanted.notify or ()))
    made: dict[str, Node] = {}
    for name in _in_order(nodes):
        try:
            made[name] = _added(workflow, nodes[name], made)
        except MainspringError as error:
            error.args = (f"node {name!r}: {error}",)
            raise
    if wanted.output is not None:
        workflow.output = made[_known(wanted.output, made)]
    else:
        workflow.output = made[wanted.nodes[-1].id]
    return workflow


def _in_order(nodes: Mapping[str, NodeRequest]) -> list[str]:
    """Return the nodes each after those that it needs."""
    needed = {name: {_known(one, nodes) for one in _needs(node)} for name, node in nodes.items()}
    try:
        return list(TopologicalSorter(needed).static_order())
    except CycleError as error:
        raise InvalidValue(f"expected no circle among the nodes, got: {' → '.join(error.args[1])}") from None


def _needs(node: NodeRequest) -> Iterator[str]:
    yield from node.after
    for value in (node.args, node.kwargs, node.map):
        yield from _references(value, _DEEPEST)


def _references(value: Any, depth: int) -> Iterator[str]:
    """Yield the nodes whose results *value* holds; what lies too deep is refused later, as all arguments are."""
    if depth and isinstance(value, dict):
        if set(value) == {RESULT}:
            yield str(value[RESULT])
        else:
            for inner in value.values():
                yield from _references(inner, depth - 1)
    elif depth and isinstance(value, list):
        for inner in value:
            yield from _references(inner, depth - 1)


def _added(workflow: NamedWorkflow, node: NodeRequest, made: Mapping[str, Node]) -> Node:
    """Add the job of *node* to *workflow*; those that it needs are *made* already."""
    wishes: dict[str, Any] = {
        name: getattr(node, name)
        for name in _WISHES
        if name in node.model_fields_set and getattr(node, name) is not None
    }
    if node.after:
        wishes["after"] = [made[name] for name in node.after]
    task = cast("TaskHandle[..., Any]", workflow.task(node.task)).using(**cast("Wishes", wishes))
    args, kwargs = _filled(node.args, made, _DEEPEST), _filled(node.kwargs, made, _DEEPEST)
    if node.map is None:
        return workflow.add(task, *args, **kwargs)
    return workflow.map(task, _filled(node.map, made, _DEEPEST), *args, **kwargs)


def _filled(value: Any, made: Mapping[str, Node], depth: int) -> Any:
    """Return *value* with the node itself in the place of each reference to it."""
    if not depth and isinstance(value, dict | list):
        raise InvalidPayload(f"expected arguments that are nested at most {_DEEPEST} levels deep, got more")
    if isinstance(value, dict):
        if set(value) == {RESULT}:
            return made[str(value[RESULT])]
        return {name: _filled(inner, made, depth - 1) for name, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, made, depth - 1) for inner in value]
    return value


def _known(name: str, nodes: Mapping[str, object]) -> str:
    if name not in nodes:
        raise InvalidValue(f"no node has the id {name!r}{did_you_mean(name, nodes)}")
    return name
