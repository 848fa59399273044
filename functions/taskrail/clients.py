"""The SDK's clients: made late, made cheaply, with time-outs that leave room inside API Gateway's 29 s."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from botocore.session import Session


def client(service: str, *, repeats: bool = True, **more: Any) -> Any:
    """A client whose time-outs and retries leave room for a second call in API Gateway's 29 s.

    A hung connection costs 1 s and a hung answer 2 s (S3: 3 s), three times at most, with up to 3 s of the
    SDK's own back-off between them: 12 s in all (S3: 15 s).

    Made by botocore alone, which is what boto3's clients are: importing boto3 on top of it costs every cold start
    its machinery for S3 transfers. Only S3's is boto3's, since that machinery puts large files there.

    Parameters
    ----------
    service
        Name of the service.
    repeats
        Whether a call may be made again when its answer got lost. Without, there is one try of 5 s.
    more
        Handed to the SDK as they are, ``endpoint_url`` for instance.
    """
    from botocore.config import Config

    # Every service checks its parameters itself, and those here are made by code, not by callers.
    config = Config(
        connect_timeout=1,
        read_timeout=2,
        parameter_validation=False,
        retries={"mode": "standard", "total_max_attempts": 3},
    )
    if not repeats:
        config = config.merge(Config(read_timeout=5, retries={"mode": "standard", "total_max_attempts": 1}))
    if service == "s3":
        import boto3

        # Signature 4 with the bucket in the path works for every endpoint, emulators included.
        config = config.merge(Config(signature_version="s3v4", read_timeout=3))
        make: Any = boto3.client
        return make(service, config=config, **more)
    return _session().create_client(service, config=config, **more)


@cache
def _session() -> Session:
    """The one session of this process: its clients share credentials, and what making one loads."""
    from botocore.loaders import Loader
    from botocore.session import get_session

    class TrustingLoader(Loader):
        """Takes a service's name on trust: looking it up lists the folder of every service that there is.

        A name that is none still fails, when its model is looked for.
        """

        def list_available_services(self, type_name: str) -> list[str]:
            return _AnyName()

    session = get_session()
    session.register_component("data_loader", TrustingLoader())
    return session


class _AnyName(list[str]):
    def __contains__(self, name: object) -> bool:
        return True
