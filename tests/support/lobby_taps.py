"""What was heard on all wires of a house, and what its metrics say."""

import asyncio
import base64
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

from services.shell.jwks import encode


class Tapped:
    """A house all of whose wires were tapped.

    Attributes:
        sent: what was sent to whom: (who, method, bytes).
        wire: what went through NATS: (subject, bytes).
        secrets: (what it is, its text or bytes, who may be told).
        pages: the metrics of each lobby.
        printed: all that services and nats-server printed; ``lines``: the lobbies' own.
    """

    def __init__(self):
        self.sent, self.wire, self.secrets = [], [], []
        self.pages, self.printed, self.lines = [], "", []

    def keep(self, what, secret, *may_know):
        self.secrets.append((what, secret, set(may_know)))

    def keep_tokens(self, tokens, *may_know):
        # Of an access token the signature: its other parts are no secret.
        self.keep("an access token", tokens.access_token.rpartition(".")[2], *may_know)
        self.keep("a refresh token", tokens.refresh_token.rpartition(".")[2], *may_know)


def read_page(address):
    with urllib.request.urlopen(f"http://{address}/metrics") as page:
        return page.read().decode()


async def pages_of(metrics):
    """The metrics of each lobby as they are now."""
    return [await asyncio.to_thread(read_page, address) for address in metrics]


def measured(page, name):
    """The sum of all samples of a name."""
    families = text_string_to_metric_families(page)
    return sum(sample.value for family in families for sample in family.samples if sample.name == name)


def forms(secret):
    """The bytes that would show a secret."""
    if isinstance(secret, str):
        return [secret.encode()]
    return [secret, secret.hex().encode(), base64.b64encode(secret).rstrip(b"="), encode(secret).encode()]
