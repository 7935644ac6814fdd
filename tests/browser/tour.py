"""Every page there is, each with an address at which there is something to see."""

from __future__ import annotations

from mainspring.web.site import PAGES
from tests.browser.shop import Shop

Tour = dict[str, dict[str, str]]


def tour(shop: Shop) -> Tour:
    """Return addresses by the path that the site declares for them, each by the name of its picture."""
    schedule, queue = f"/schedules/{shop.schedule}", f"/queues/{shop.queue}"
    made: Tour = {
        "/": {"overview": "/"},
        "/jobs": {"jobs": "/jobs"},
        "/jobs/{job_id:uuid}": {
            "job": f"/jobs/{shop.job}",
            "job-failed": f"/jobs/{shop.failed}",
            "job-running": f"/jobs/{shop.running}",
            "job-waiting": f"/jobs/{shop.waiting}",
            "job-durable": f"/jobs/{shop.durable}",
        },
        "/schedules": {"schedules": "/schedules"},
        "/schedules/-/new": {"schedule-new": "/schedules/-/new"},
        "/schedules/-/heat": {"schedules-heat": "/schedules/-/heat"},
        "/schedules/{schedule_id:path}": {"schedule": schedule},
        "/schedules/-/edit": {"schedule-edit": f"/schedules/-/edit?schedule={shop.schedule}"},
        "/schedules/-/remove": {"schedule-remove": f"/schedules/-/remove?schedule={shop.schedule}"},
        "/schedules/-/backfill": {
            "schedule-backfill": f"/schedules/-/backfill?schedule={shop.schedule}"
            "&from=2026-01-01T00:00&to=2026-01-02T00:00"
        },
        "/workflows": {"workflows": "/workflows"},
        "/workflows/{job_id:uuid}": {
            "workflow": f"/workflows/{shop.workflow}",
            "workflow-failed": f"/workflows/{shop.broken_workflow}",
        },
        "/workflows/{job_id:uuid}/cancel": {"workflow-cancel": f"/workflows/{shop.unfinished_workflow}/cancel"},
        "/dead": {"dead": "/dead"},
        "/dead/{group}": {"dead-group": f"/dead/{shop.group}"},
        "/dead/{group}/discard": {"dead-discard": f"/dead/{shop.group}/discard"},
        "/queues": {"queues": "/queues"},
        "/queues/{name:path}": {"queue": queue},
        "/workers": {"workers": "/workers"},
        "/limits": {"limits": "/limits"},
        "/limits/breakers/reset": {"breaker-reset": f"/limits/breakers/reset?key={shop.breaker}"},
        "/alerts": {"alerts": "/alerts"},
        "/alerts/add": {"alert-add": "/alerts/add?kind=error_rate"},
        "/alerts/remove": {"alert-remove": f"/alerts/remove?alert={shop.alert}"},
        "/alerts/notifications/add": {
            "webhook-add": "/alerts/notifications/add?kind=webhook",
            "email-add": "/alerts/notifications/add?kind=email",
        },
        "/alerts/notifications/remove": {
            "notification-remove": f"/alerts/notifications/remove?notification={shop.notification}"
        },
        "/tokens": {"tokens": "/tokens"},
        "/tokens/{token_id}/revoke": {"token-revoke": f"/tokens/{shop.token}/revoke"},
        "/audit": {"audit": "/audit"},
        "/login": {"login": "/login"},
    }
    declared = {path for pages in PAGES for method, path, _, _ in pages.made if method == "GET"} | {"/login"}
    assert declared == made.keys(), f"expected an address for each page, differing in: {declared ^ made.keys()}"
    return made


def stops(shop: Shop) -> dict[str, str]:
    """Return all addresses by the names of their pictures."""
    return {name: address for addresses in tour(shop).values() for name, address in addresses.items()}
