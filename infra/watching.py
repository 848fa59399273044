"""Seeing how a deployment is doing: its alarms, and the page that shows them."""

from __future__ import annotations

from constructs import Construct

from infra.alarms import Alarms
from infra.configuration import Configuration
from infra.dashboard import Dashboard
from infra.parts import Parts


class Watching(Construct):
    """Alarms, and by option a dashboard.

    Parameters
    ----------
    configuration
        Who hears of alarms, and whether there is a dashboard.
    endpoint
        Where the deployment answers.
    parts
        What is watched.
    """

    def __init__(
        self, scope: Construct, name: str, *, configuration: Configuration, endpoint: str, parts: Parts
    ) -> None:
        super().__init__(scope, name)
        alarms = Alarms(self, "Alarms", parts=parts, topic_arn=configuration.alarm_topic_arn).alarms
        if configuration.dashboard:
            Dashboard(self, "Dashboard", title=configuration.name, endpoint=endpoint, parts=parts, alarms=alarms)
