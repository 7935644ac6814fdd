"""Callers: who asks, for which team, and what he may do there."""

from __future__ import annotations

import asyncio
import hmac
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Request

from mainspring.api.origin import check_origin
from mainspring.api.policy import Policy, Where
from mainspring.api.problems import Problem
from mainspring.api.recorder import Recorder
from mainspring.app import Mainspring
from mainspring.clock import SystemClock
from mainspring.keys import Keyring
from mainspring.model.audit import Entry
from mainspring.model.team import DEFAULT_TEAM, check_team
from mainspring.model.token import ALL_TEAMS, Role, Token

TEAM_HEADER = "Mainspring-Team"
MEMORY = 0.5
"""Seconds for which a token that was verified is taken for good: half of the second in which a revocation holds."""

_MOST_REMEMBERED = 10_000


@dataclass(frozen=True)
class Settings:
    """What the API has to know of how it is served."""

    loopback: bool = True  # whether nobody but this machine can reach it: only then may it do without tokens
    metrics_token: str | None = field(default=None, repr=False)  # with which metrics can be read, and nothing else


@dataclass
class Caller:
    """Whoever makes a request: `app` is the team's, and `whole` everybody's, for who has a role everywhere."""

    app: Mainspring
    whole: Mainspring
    team: str
    role: Role
    everywhere: Role | None
    actor: str
    token: str | None  # its text; None for who was let in without
    policy: Policy
    recorder: Recorder
    named: bool  # whether the request says itself which team it is about
    in_fleet: Role | None = None  # what he may do to what holds for all
    recorded: bool = field(default=False, init=False)

    @property
    def reach(self) -> Mainspring:
        """Everybody's for who may do this everywhere and names no team, and else the team's."""
        role = self.policy.role or Role.VIEWER
        return self.whole if self.everywhere and self.everywhere.allows(role) and not self.named else self.app

    @property
    def keys(self) -> Keyring:
        """What opens the arguments and results of encrypted jobs, as far as this server may."""
        return self.whole.client.keys

    def entry(self, target: object, **details: object) -> Entry:
        """Return what the audit log is to say of this request."""
        assert self.policy.records is not None
        self.recorded = True
        known = {name: value for name, value in details.items() if value is not None}
        team = self.team if self.policy.where is Where.TEAM else None
        return Entry(self.actor, self.policy.records, str(target), team, known)

    def admit(self, *, jobs: int = 0, schedules: int = 0) -> None:
        """Raise QuotaExceeded if the team may not have so many more."""
        self.app.teams.admit(self.team, jobs=jobs, schedules=schedules)

    def record(self, target: object, **details: object) -> None:
        """Have it in the audit log that this is asked for, before it is done."""
        self._recording(target, details).result()

    async def arecord(self, target: object, **details: object) -> None:
        """Do as `record` does, without a thread."""
        await asyncio.wrap_future(self._recording(target, details))

    def _recording(self, target: object, details: dict[str, Any]) -> Future[None]:
        return self.recorder.record(self.entry(target, **details))


class Gate:
    """Lets in whoever may. A token is asked of the database again when what is known of it is half a second old."""

    def __init__(self, app: Mainspring, settings: Settings, recorder: Recorder) -> None:
        self._app = app
        self._settings = settings
        self._recorder = recorder
        self._clock = SystemClock()
        self._known: OrderedDict[str, tuple[float, Token]] = OrderedDict()
        self._asked: dict[str, asyncio.Task[Token | None]] = {}
        self._guarded: tuple[float, bool] | None = None
        self._views: dict[str, Mainspring] = {}

    async def admit(self, request: Request, policy: Policy) -> Caller:
        """Return who makes *request*, if he may do what *policy* asks for; raise the Problem that it is if not."""
        text = _bearer(request)
        if policy.scraped and self._is_scraper(text):
            return self._scraper(policy)
        caller = await self.admit_shown(text, policy, _named(request))
        if text is None:
            check_origin(request.headers)
        return caller

    async def check_shown(self, text: str | None) -> None:
        """Refuse whoever shows a token *text*, or none, that lets in nobody, before it is known what he asks for."""
        await self._token(text)

    async def admit_shown(self, text: str | None, policy: Policy, named: set[str]) -> Caller:
        """Return who shows the token *text*, or none, for the team that is *named*, or for his own."""
        token = await self._token(text)
        grants = {ALL_TEAMS: Role.ADMIN} if token is None else token.grants
        team = _team(named, grants)
        everywhere = grants.get(ALL_TEAMS)
        role = everywhere if token is None else token.role_in(team)
        if role is None:
            raise Problem(404, "team-not-found", f"nothing is known of a team named {team!r}")
        in_fleet = everywhere if token is None else token.role_in(DEFAULT_TEAM)
        held = {Where.TEAM: role, Where.FLEET: in_fleet, Where.EVERYWHERE: everywhere}[policy.where]
        if held is None or not held.allows(policy.role or Role.VIEWER):
            raise Problem(403, "role-too-small", f"expected {policy}, got: {held or 'none'}")
        return Caller(
            app=self._view(team),
            whole=self._app,
            team=team,
            role=role,
            everywhere=everywhere,
            actor="anybody on this machine" if token is None else f"token:{token.id} {token.name}",
            token=text,
            policy=policy,
            recorder=self._recorder,
            named=bool(named),
            in_fleet=in_fleet,
        )

    def _is_scraper(self, text: str | None) -> bool:
        token = self._settings.metrics_token
        return bool(token and text) and hmac.compare_digest(str(text).encode(), str(token).encode())

    def _scraper(self, policy: Policy) -> Caller:
        return Caller(
            app=self._view(DEFAULT_TEAM),
            whole=self._app,
            team=DEFAULT_TEAM,
            role=Role.VIEWER,
            everywhere=Role.VIEWER,
            actor="whoever reads metrics",
            token=None,
            policy=policy,
            recorder=self._recorder,
            named=False,
        )

    async def still_lets_in(self, caller: Caller) -> bool:
        """Return whether *caller* would be let in now as he was then: no longer when his token was revoked."""
        if caller.token is None:
            return not await self._is_guarded()
        token = await self._verified(caller.token)
        return token is not None and token.role_in(caller.team) is not None

    async def check_still(self, caller: Caller) -> None:
        """Refuse *caller*, who has waited for his answer, if he would not be let in now."""
        if not await self.still_lets_in(caller):
            raise _unknown()

    async def _token(self, text: str | None) -> Token | None:
        """Return the token that *text* is; None where none is needed."""
        if text is None:
            if await self._is_guarded():
                raise Problem(401, "token-missing", "expected a token, as in `Authorization: Bearer ms_…`, got none")
            return None
        token = await self._verified(text)
        if token is None:
            raise _unknown()
        return token

    async def _is_guarded(self) -> bool:
        """Return whether a token is needed: always, but for loopback while none was ever made.

        One that has expired or was revoked counts, too: that the last one is gone must not let everybody in.
        """
        if not self._settings.loopback:
            return True
        now = self._clock.steady()
        if self._guarded is None or now - self._guarded[0] >= MEMORY:
            self._guarded = now, bool(await asyncio.to_thread(self._app.tokens.list))
        return self._guarded[1]

    async def _verified(self, text: str) -> Token | None:
        known = self._known.get(text)
        if known is not None and self._clock.steady() - known[0] < MEMORY:
            return known[1]
        asked = self._asked.get(text)
        if asked is None:
            # One asks for all: of fifty that come while it is asked, each would else take a thread for the same answer.
            asked = self._asked[text] = asyncio.create_task(self._verify(text))
            asked.add_done_callback(lambda _: self._asked.pop(text))
        return await asyncio.shield(asked)  # whose connection is cut must not take the answer from the others

    async def _verify(self, text: str) -> Token | None:
        now = self._clock.steady()
        token = await asyncio.to_thread(self._app.tokens.verify, text)
        self._remember(text, now, token)
        return token

    def _remember(self, text: str, now: float, token: Token | None) -> None:
        """Keep what was found, by the time at which it was asked; what is wrong is not kept, for it costs nothing."""
        self._known.pop(text, None)
        if token is not None:
            self._known[text] = now, token
        while len(self._known) > _MOST_REMEMBERED:
            self._known.popitem(last=False)

    def _view(self, team: str) -> Mainspring:
        view = self._views.get(team)
        if view is None:
            view = self._app.within(team)
            if len(self._views) < _MOST_REMEMBERED:
                self._views[team] = view
        return view


def has_live_token(app: Mainspring, role: Role = Role.VIEWER) -> bool:
    """Return whether there is a token that lets anybody in, with at least this *role* somewhere."""
    now = app.client.store.now()
    return any(
        token.revoked_at is None
        and (token.expires_at is None or token.expires_at > now)
        and any(granted.allows(role) for granted in token.grants.values())
        for token in app.tokens.list()
    )


def _unknown() -> Problem:
    return Problem(401, "token-unknown", "expected a token that is known, not revoked and not expired")


def _bearer(request: Request) -> str | None:
    """Return the token that a request shows, be it empty; None when it shows nothing of the kind."""
    shown = request.headers.getlist("authorization")
    if not shown:
        return None
    kind, _, text = shown[0].partition(" ")
    if len(shown) > 1 or kind.lower() != "bearer":
        raise Problem(401, "token-missing", "expected one header like `Authorization: Bearer ms_…`, got another")
    return text.strip()


def _team(named: set[str], grants: Any) -> str:
    """Return the team that a request is about: the one it names, or the only one of its token."""
    if len(named) > 1:
        raise Problem(422, "invalid-value", f"expected one team, got: {', '.join(sorted(named))}")
    if named:
        (team,) = named
        check_team(team)
        return str(team)
    if ALL_TEAMS in grants or DEFAULT_TEAM in grants:
        return DEFAULT_TEAM
    if len(grants) > 1:
        raise Problem(
            422,
            "team-missing",
            f"expected a team in the header {TEAM_HEADER} or in ?team=, as the token is for {len(grants)}, got none",
        )
    return str(next(iter(grants)))


def _named(request: Request) -> set[str]:
    return {*request.headers.getlist(TEAM_HEADER), *request.query_params.getlist("team")}


async def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


Asking = Annotated[Caller, Depends(_caller)]
"""What a handler calls the caller."""
