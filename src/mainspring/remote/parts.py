"""The parts of a client that a fleet is ruled by, with the names that the app has for them."""

from __future__ import annotations

from mainspring.remote import platform
from mainspring.remote.talk import Awaited, Spoken, awaited, said


class RemoteTokens(Spoken):
    """The tokens of the server."""

    create = said(platform.create_token)
    get = said(platform.get_token)
    list = said(platform.tokens)
    revoke = said(platform.revoke_token)


class AsyncRemoteTokens(Awaited):
    """The tokens of the server, awaited."""

    create = awaited(platform.create_token)
    get = awaited(platform.get_token)
    list = awaited(platform.tokens)
    revoke = awaited(platform.revoke_token)


class RemoteSecrets(Spoken):
    """The team's secrets on the server."""

    set = said(platform.set_secret)
    list = said(platform.secrets)
    remove = said(platform.remove_secret)


class AsyncRemoteSecrets(Awaited):
    """The team's secrets on the server, awaited."""

    set = awaited(platform.set_secret)
    list = awaited(platform.secrets)
    remove = awaited(platform.remove_secret)


class RemoteAlerts(Spoken):
    """The alerts of the server."""

    add = said(platform.put_alert)
    get = said(platform.get_alert)
    list = said(platform.alerts)
    remove = said(platform.remove_alert)


class AsyncRemoteAlerts(Awaited):
    """The alerts of the server, awaited."""

    add = awaited(platform.put_alert)
    get = awaited(platform.get_alert)
    list = awaited(platform.alerts)
    remove = awaited(platform.remove_alert)


class RemoteNotifications(Spoken):
    """The team's notifications on the server."""

    add = said(platform.put_notification)
    get = said(platform.get_notification)
    list = said(platform.notifications)
    remove = said(platform.remove_notification)
    test = said(platform.test_notification)


class AsyncRemoteNotifications(Awaited):
    """The team's notifications on the server, awaited."""

    add = awaited(platform.put_notification)
    get = awaited(platform.get_notification)
    list = awaited(platform.notifications)
    remove = awaited(platform.remove_notification)
    test = awaited(platform.test_notification)


class RemoteRetention(Spoken):
    """The rules for how long the server keeps jobs."""

    set = said(platform.set_retention)
    list = said(platform.retention)
    remove = said(platform.remove_retention)


class AsyncRemoteRetention(Awaited):
    """The rules for how long the server keeps jobs, awaited."""

    set = awaited(platform.set_retention)
    list = awaited(platform.retention)
    remove = awaited(platform.remove_retention)


class RemoteAudit(Spoken):
    """The audit log of the server."""

    list = said(platform.records)


class AsyncRemoteAudit(Awaited):
    """The audit log of the server, awaited."""

    list = awaited(platform.records)


class RemoteTeams(Spoken):
    """The teams of the server."""

    set = said(platform.set_team)
    get = said(platform.get_team)
    list = said(platform.teams)
    remove = said(platform.remove_team)


class AsyncRemoteTeams(Awaited):
    """The teams of the server, awaited."""

    set = awaited(platform.set_team)
    get = awaited(platform.get_team)
    list = awaited(platform.teams)
    remove = awaited(platform.remove_team)


class RemotePausedTasks(Spoken):
    """The tasks of the server that are paused."""

    list = said(platform.paused_tasks)
    pause = said(platform.pause_task)
    resume = said(platform.resume_task)


class AsyncRemotePausedTasks(Awaited):
    """The tasks of the server that are paused, awaited."""

    list = awaited(platform.paused_tasks)
    pause = awaited(platform.pause_task)
    resume = awaited(platform.resume_task)


class RemoteLimits(Spoken):
    """The limits of the fleet."""

    list = said(platform.limits)
    release = said(platform.release_limit)


class AsyncRemoteLimits(Awaited):
    """The limits of the fleet, awaited."""

    list = awaited(platform.limits)
    release = awaited(platform.release_limit)


class RemoteBreakers(Spoken):
    """The breakers of the fleet."""

    get = said(platform.get_breaker)
    list = said(platform.breakers)
    trip = said(platform.trip_breaker)
    reset = said(platform.reset_breaker)


class AsyncRemoteBreakers(Awaited):
    """The breakers of the fleet, awaited."""

    get = awaited(platform.get_breaker)
    list = awaited(platform.breakers)
    trip = awaited(platform.trip_breaker)
    reset = awaited(platform.reset_breaker)
