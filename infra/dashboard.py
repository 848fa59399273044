"""One page that shows how a deployment is doing: first what users see, then what is behind it."""

from __future__ import annotations

from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.dashboard_rows import THIRD, requests_row, runs_row, upkeep_row, users_row
from infra.parts import Parts


class Dashboard(Construct):
    """The dashboard.

    Parameters
    ----------
    title, endpoint
        Whose it is, and where that answers.
    parts, alarms
        What it shows.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        title: str,
        endpoint: str,
        parts: Parts,
        alarms: list[cloudwatch.IAlarm],
    ) -> None:
        super().__init__(scope, name)
        board = cloudwatch.Dashboard(self, "Board", dashboard_name=title)
        board.add_widgets(
            cloudwatch.TextWidget(markdown=f"# {title}\n{endpoint}", width=THIRD, height=3),
            cloudwatch.AlarmStatusWidget(title="Alarms", alarms=alarms, width=THIRD * 2, height=3),
        )
        board.add_widgets(*users_row(parts))
        board.add_widgets(*requests_row(parts))
        board.add_widgets(*runs_row(parts))
        board.add_widgets(*upkeep_row(parts))
