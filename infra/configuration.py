"""What can be chosen at a deployment: one frozen object, validated before anything is made."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, cast

from infra.context import ConfigurationError, Context

Api = Literal["http", "rest"]
Auth = Literal["jwt", "iam", "lambda", "api_key", "none"]

APIS: tuple[Api, ...] = ("http", "rest")
AUTHS: tuple[Auth, ...] = ("jwt", "iam", "lambda", "api_key", "none")
PYTHONS = ("3.12", "3.13", "3.14")
RETENTIONS: Mapping[int, str] = {
    1: "ONE_DAY",
    3: "THREE_DAYS",
    5: "FIVE_DAYS",
    7: "ONE_WEEK",
    14: "TWO_WEEKS",
    30: "ONE_MONTH",
    60: "TWO_MONTHS",
    90: "THREE_MONTHS",
    120: "FOUR_MONTHS",
    150: "FIVE_MONTHS",
    180: "SIX_MONTHS",
    365: "ONE_YEAR",
    400: "THIRTEEN_MONTHS",
    545: "EIGHTEEN_MONTHS",
    731: "TWO_YEARS",
    1096: "THREE_YEARS",
    1827: "FIVE_YEARS",
    2192: "SIX_YEARS",
    2557: "SEVEN_YEARS",
    2922: "EIGHT_YEARS",
    3288: "NINE_YEARS",
    3653: "TEN_YEARS",
}
"""How many days CloudWatch Logs can keep logs, and what CDK calls that."""

# A single FastMCP client sends nine reads in its first five seconds; below this, one client alone would be refused.
LEAST_RATE = 10
LEAST_BURST = 20

_URL = r"https://[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._~%/-]*)?"
_LOOPBACK = rf"{_URL}|http://127\.0\.0\.1:[0-9]+"
_NAME = r"[A-Za-z0-9_:./-]{1,128}"
_COGNITO = r"https://cognito-idp\.[a-z0-9-]+\.amazonaws\.com/[a-z0-9-]+_[A-Za-z0-9]+"


@dataclass(frozen=True)
class Configuration:
    """One deployment as it was asked for. Every field is a key of the CDK context, with the default below.

    Parameters
    ----------
    name
        Name of the stack, and beginning of the names in it.
    api
        ``http``: an HTTP API, the cheaper one. ``rest``: a REST API, for API keys and WAF.
    auth
        ``jwt``, ``iam``, ``lambda``, ``api_key`` (REST only), or ``none`` together with `allow_anonymous`.
    issuer, audience, scopes
        Of ``jwt``: who signs tokens, for whom, and scopes that every token must have. On a REST API the issuer is
        a Cognito user pool, and scopes are needed.
    tenant_claim, claims
        Of ``jwt`` and ``lambda``: the claim, or the key of the authorizer's context, that names a caller's tenant,
        and those that tools may know of.
    iam_owner
        Of ``iam``: whether a task belongs to the ``role``, or to the ``session`` of it.
    authorizer_arn, owner_key
        Of ``lambda``: a Lambda authorizer, and the key of its context that names the caller.
    allow_anonymous
        Has to be true for ``none``: anybody may call, and everybody is the same caller.
    domain_name, certificate_arn, hosted_zone_id, hosted_zone_name
        A domain of one's own, its certificate in this region, and the zone of Route 53 to write its records to.
    most_open
        How many tasks a caller may have open, by the tool's name; ``*`` for all that are not named.
    throttle_rate, throttle_burst
        Requests a second, and at once, over all callers.
    concurrency
        Most requests that the API function answers or lets wait at once; none: what the account has.
    snap_start
        Whether the API function starts from a snapshot of itself, which costs something while it is kept.
    tracing
        Whether functions, state machines and a REST API send traces to X-Ray, which are paid by the trace.
    wait_seconds
        How long a request may wait for the task of a client that knows no tasks.
    stage
        Stage of a REST API: the first segment of its path unless a domain hides it.
    allowed_origins
        Pages whose scripts may call, ``https://host`` each, or ``*``.
    log_retention_days
        How long logs are kept.
    python, architecture
        Of the functions.
    emulator
        Deploy to an emulator on this machine: functions are built for its Python, and tools on Batch are left out.
    event_bus
        Name of the bus that is told of tasks, ``default`` for instance; none: nobody is.
    listen, listen_seconds
        What a subscription to tasks gets: nothing (``off``), or an answer that is held back until something changes
        (``hold``), so long at most.
    experimental_tasks
        Whether clients of revision 2025-11-25 get that revision's tasks; the table has an index then.
    removal
        What becomes of table, bucket, secret and logs when the stack is deleted: ``retain`` or ``destroy``.
    deletion_protection
        Whether the table refuses to be deleted.
    input_days
        How long uploaded inputs are kept; none: for ever.
    vpc_id, vpc_subnet_ids, vpc_availability_zones, vpc_public_ip
        A network for jobs on Batch that is there already, and whether its subnets need public addresses to reach
        the internet; without them one is made, without NAT gateways.
    max_vcpus
        Most vCPUs that jobs on Batch use at once.
    images
        URI of an image by the name of a Python tool on Batch, in place of one built here.
    alarm_topic_arn
        SNS topic that hears of alarms.
    dashboard
        Whether there is one; the first three of an account are free.
    """

    name: str = "taskrail"
    api: Api = "http"
    auth: Auth = "none"
    issuer: str | None = None
    audience: tuple[str, ...] = ()
    tenant_claim: str | None = None
    claims: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    iam_owner: Literal["role", "session"] = "role"
    authorizer_arn: str | None = None
    owner_key: str | None = None
    allow_anonymous: bool = False
    domain_name: str | None = None
    certificate_arn: str | None = None
    hosted_zone_id: str | None = None
    hosted_zone_name: str | None = None
    most_open: Mapping[str, int] = field(default_factory=dict)
    throttle_rate: int = 500
    throttle_burst: int = 1000
    concurrency: int | None = None
    snap_start: bool = False
    tracing: bool = True
    wait_seconds: int = 15
    stage: str = "v1"
    allowed_origins: tuple[str, ...] = ()
    log_retention_days: int = 30
    python: str = "3.13"
    architecture: Literal["arm64", "x86_64"] = "arm64"
    emulator: bool = False
    event_bus: str | None = None
    listen: Literal["off", "hold"] = "off"
    listen_seconds: int = 15
    experimental_tasks: bool = False
    removal: Literal["retain", "destroy"] = "retain"
    deletion_protection: bool = True
    input_days: int | None = 30
    vpc_id: str | None = None
    vpc_subnet_ids: tuple[str, ...] = ()
    vpc_availability_zones: tuple[str, ...] = ()
    vpc_public_ip: bool = False
    max_vcpus: int = 64
    images: Mapping[str, str] = field(default_factory=dict)
    alarm_topic_arn: str | None = None
    dashboard: bool = True

    def __post_init__(self) -> None:
        """Refuse combinations that cannot work."""
        self._check_auth()
        self._check_together("domain_name", "certificate_arn")
        self._check_together("hosted_zone_id", "hosted_zone_name")
        if self.hosted_zone_id and not self.domain_name:
            raise ConfigurationError("hosted_zone_id", "belongs to a domain: give domain_name and certificate_arn")
        self._check_together("vpc_id", "vpc_subnet_ids")
        self._check_together("vpc_id", "vpc_availability_zones")
        if len(self.vpc_subnet_ids) != len(self.vpc_availability_zones):
            raise ConfigurationError("vpc_availability_zones", "has one for each of vpc_subnet_ids, in the same order")
        if self.removal == "destroy" and self.deletion_protection:
            raise ConfigurationError("deletion_protection", "has to be false with removal=destroy")
        if self.log_retention_days not in RETENTIONS:
            raise ConfigurationError("log_retention_days", f"is one of {', '.join(map(str, RETENTIONS))}")

    def _check_auth(self) -> None:
        needed: dict[Auth, tuple[str, ...]] = {"jwt": ("issuer", "audience"), "lambda": ("authorizer_arn", "owner_key")}
        for key in needed.get(self.auth, ()):
            if not getattr(self, key):
                raise ConfigurationError(key, f"is needed with auth={self.auth}")
        for key in ("tenant_claim", "claims"):
            if self.auth not in ("jwt", "lambda") and getattr(self, key):
                raise ConfigurationError(key, f"means nothing with auth={self.auth}; it belongs to jwt and lambda")
        for auth, keys in {**needed, "jwt": ("issuer", "audience", "scopes")}.items():
            for key in keys:
                if auth != self.auth and getattr(self, key):
                    raise ConfigurationError(key, f"means nothing with auth={self.auth}; it belongs to auth={auth}")
        if self.auth == "none" and not self.allow_anonymous:
            raise ConfigurationError(
                "auth",
                "choose who may call: jwt, iam, lambda, or api_key with api=rest. For an API that anybody on the "
                "internet may call, and where everybody may read everybody's tasks: none and allow_anonymous=true",
            )
        if self.auth == "none" and self.experimental_tasks:
            raise ConfigurationError("experimental_tasks", "has lists of a caller's tasks, so callers must be known")
        if self.auth != "none" and self.allow_anonymous:
            raise ConfigurationError("allow_anonymous", f"contradicts auth={self.auth}; leave one of them out")
        if self.auth == "api_key" and self.api != "rest":
            raise ConfigurationError("auth", "api_key needs api=rest: HTTP APIs know no keys. Others: jwt, iam, lambda")
        if self.auth == "jwt" and self.api == "rest":
            self._check_cognito()

    def _check_cognito(self) -> None:
        if not re.fullmatch(_COGNITO, self.issuer or ""):
            raise ConfigurationError(
                "issuer",
                "a REST API checks tokens of Cognito only: https://cognito-idp.REGION.amazonaws.com/POOL. For another "
                "issuer take api=http, or auth=lambda with an authorizer of your own",
            )
        if not self.scopes:
            raise ConfigurationError(
                "scopes", "a REST API takes access tokens of Cognito only for named scopes; give at least one"
            )

    def _check_together(self, first: str, second: str) -> None:
        for one, other in ((first, second), (second, first)):
            if getattr(self, one) and not getattr(self, other):
                raise ConfigurationError(other, f"is needed with {one}")

    @classmethod
    def from_context(cls, values: Mapping[str, Any]) -> Configuration:
        """The configuration that a CDK context describes.

        Parameters
        ----------
        values
            The whole context of the app; keys of CDK's own are let alone.

        Raises
        ------
        ConfigurationError
            A value is wrong, or a key unknown; the message names the key and what is allowed.
        """
        context = Context(values)
        context.refuse_unknown(each.name for each in fields(cls))
        emulator = context.flag("emulator", cls.emulator)
        given: dict[str, Any] = {
            "name": context.text("name", pattern=r"[A-Za-z][A-Za-z0-9-]{0,39}", example="taskrail"),
            "api": context.choice("api", APIS, cls.api),
            "auth": context.choice("auth", AUTHS, cls.auth),
            "issuer": context.text(
                "issuer", pattern=_LOOPBACK if emulator else _URL, example="https://auth.example.com/"
            ),
            "audience": context.listed("audience", pattern=r"\S+", example="https://api.example.com/mcp"),
            "tenant_claim": context.text("tenant_claim", pattern=_NAME, example="tenant_id"),
            "claims": context.listed("claims", pattern=_NAME, example="email"),
            "most_open": context.counts("most_open", example='{"render_report": 5, "*": 20}'),
            "scopes": context.listed("scopes", pattern=r"[A-Za-z0-9._:/-]+", example="tasks/use"),
            "iam_owner": context.choice("iam_owner", ("role", "session"), cls.iam_owner),
            "authorizer_arn": context.text(
                "authorizer_arn",
                pattern=r"arn:aws[a-z-]*:lambda:[a-z0-9-]+:[0-9]{12}:function:[A-Za-z0-9_-]+(:[A-Za-z0-9_$-]+)?",
                example="arn:aws:lambda:eu-central-1:111122223333:function:authorizer",
            ),
            "owner_key": context.text("owner_key", pattern=_NAME, example="sub"),
            "allow_anonymous": context.flag("allow_anonymous", cls.allow_anonymous),
            "domain_name": context.text(
                "domain_name", pattern=r"([a-z0-9-]+\.)+[a-z0-9-]+", example="tasks.example.com"
            ),
            "certificate_arn": context.text(
                "certificate_arn",
                pattern=r"arn:aws[a-z-]*:acm:[a-z0-9-]+:[0-9]{12}:certificate/[A-Za-z0-9-]+",
                example="arn:aws:acm:eu-central-1:111122223333:certificate/…",
            ),
            "hosted_zone_id": context.text("hosted_zone_id", pattern=r"Z[A-Z0-9]+", example="Z0123456789ABC"),
            "hosted_zone_name": context.text("hosted_zone_name", pattern=r"([a-z0-9-]+\.)+[a-z0-9-]+\.?"),
            "throttle_rate": context.number("throttle_rate", LEAST_RATE, 10_000, cls.throttle_rate),
            "throttle_burst": context.number("throttle_burst", LEAST_BURST, 10_000, cls.throttle_burst),
            "concurrency": context.number("concurrency", 1, 100_000, cls.concurrency),
            "snap_start": context.flag("snap_start", cls.snap_start),
            "tracing": context.flag("tracing", cls.tracing),
            "wait_seconds": context.number("wait_seconds", 1, 20, cls.wait_seconds),
            "stage": context.text("stage", pattern=r"[A-Za-z0-9_]{1,32}", example="v1"),
            "allowed_origins": context.listed(
                "allowed_origins", pattern=r"\*|https?://[a-z0-9._-]+(:[0-9]+)?", example="https://app.example.com"
            ),
            "log_retention_days": context.number("log_retention_days", 1, 3653, cls.log_retention_days),
            "python": context.choice("python", PYTHONS, cls.python),
            "architecture": context.choice("architecture", ("arm64", "x86_64"), cls.architecture),
            "emulator": emulator,
            "listen": context.choice("listen", ("off", "hold"), cls.listen),
            "listen_seconds": context.number("listen_seconds", 1, 20, cls.listen_seconds),
            "experimental_tasks": context.flag("experimental_tasks", cls.experimental_tasks),
            "event_bus": context.text("event_bus", pattern=r"[A-Za-z0-9._/-]{1,256}", example="default"),
            "removal": context.choice("removal", ("retain", "destroy"), cls.removal),
            "deletion_protection": context.flag("deletion_protection", cls.deletion_protection),
            "input_days": context.number("input_days", 0, 3653, cls.input_days) or None,
            "vpc_id": context.text("vpc_id", pattern=r"vpc-[0-9a-f]{8,17}", example="vpc-0123456789abcdef0"),
            "vpc_subnet_ids": context.listed(
                "vpc_subnet_ids", pattern=r"subnet-[0-9a-f]{8,17}", example="subnet-0123456789abcdef0"
            ),
            "vpc_availability_zones": context.listed(
                "vpc_availability_zones", pattern=r"[a-z]{2}(-[a-z0-9]+)+", example="eu-central-1a"
            ),
            "vpc_public_ip": context.flag("vpc_public_ip", cls.vpc_public_ip),
            "max_vcpus": context.number("max_vcpus", 1, 10_000, cls.max_vcpus),
            "images": context.mapping("images", example='{"render_report": "REGISTRY/IMAGE:TAG"}'),
            "alarm_topic_arn": context.text("alarm_topic_arn", pattern=r"arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:\S+"),
            "dashboard": context.flag("dashboard", cls.dashboard),
        }
        # `concurrency` and `input_days` may be none on purpose; elsewhere none is "not given".
        kept = {key: value for key, value in given.items() if value is not None or key == "input_days"}
        return cls(**cast(Any, kept))
