"""What was heard on all wires of a house."""


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
