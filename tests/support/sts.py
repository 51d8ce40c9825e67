"""STS and IAM for tests: moto's server, in a process of its own, which asks for signatures and minds roles' policies.

It does not hold keys to the policy of their own session, and knows no conditions in policies: what it cannot prove is
said where it is used.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2 as httpx

REGION = "eu-central-1"
_TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": "*"}}],
}
_ASSUME = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": "*"}]}


@dataclass(frozen=True)
class Sts:
    """A running server."""

    endpoint: str
    key_id: str
    secret: str

    def client(self, service: str, *keys: str) -> Any:
        """A client of one of its services, with these keys."""
        return _client(self.endpoint, service, *(keys or (self.key_id, self.secret)))

    def role(self, name: str, policy: str) -> str:
        """A role that may do what a policy says."""
        self._asking(asks=False)
        iam = self.client("iam")
        arn = iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(_TRUST))["Role"]["Arn"]
        iam.put_role_policy(RoleName=name, PolicyName="own", PolicyDocument=policy)
        self._asking(asks=True)
        return str(arn)

    def put(self, bucket: str, *keys: str) -> None:
        """Files in a bucket."""
        self._asking(asks=False)
        s3 = self.client("s3")
        s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
        for key in keys:
            s3.put_object(Bucket=bucket, Key=key, Body=b"x")
        self._asking(asks=True)

    def _asking(self, *, asks: bool) -> None:
        httpx.post(f"{self.endpoint}/moto-api/reset-auth", content=b"0" if asks else b"1000000").raise_for_status()


def _client(endpoint: str, service: str, *keys: str) -> Any:
    from botocore.config import Config  # noqa: PLC0415
    from botocore.session import Session  # noqa: PLC0415

    names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
    config = Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1})
    return Session().create_client(
        service, endpoint_url=endpoint, region_name=REGION, config=config, **dict(zip(names, keys, strict=False))
    )


@contextmanager
def server() -> Iterator[Sts]:
    """The server, with a user who may assume roles."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    kept = {"PATH": os.environ["PATH"]}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=kept)
    try:
        endpoint = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + 60
        while True:
            try:
                httpx.get(f"{endpoint}/moto-api/")
                break
            except httpx.TransportError:
                assert process.poll() is None and time.monotonic() < deadline  # noqa: PT018
                time.sleep(0.1)
        iam = _client(endpoint, "iam", "any", "any")
        iam.create_user(UserName="headgate")
        iam.put_user_policy(UserName="headgate", PolicyName="own", PolicyDocument=json.dumps(_ASSUME))
        made = iam.create_access_key(UserName="headgate")["AccessKey"]
        yield Sts(endpoint, made["AccessKeyId"], made["SecretAccessKey"])
    finally:
        process.kill()
        process.wait()
