"""What every service counts: calls by method and code, and what runs. Labels are closed sets, no ids."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Final

import grpc
from prometheus_client import CollectorRegistry, Counter, Gauge, disable_created_metrics, start_http_server
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from services.shell.config import split_address

disable_created_metrics()  # type: ignore[no-untyped-call]  # when a series was made is of no use

BUCKETS: Final = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
"""Upper bounds of every histogram of seconds: 0.1 ms to 10 s."""


class Seconds:
    """One series of a histogram of seconds. Written by the event loop alone, so it needs no lock."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        """Count one observation."""
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds


class Histogram(Collector):
    """A histogram of seconds whose label has a closed set of values.

    The library's own takes a lock and walks its buckets at every observation, at five times the cost, and one
    command is observed six times.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        name: str,
        text: str,
        label: str = "",
        values: Iterable[str] = ("",),
    ) -> None:
        """Make all series at once.

        Args:
            registry: where it is scraped from.
            name: of the metric, such as "shengji_rpc_seconds".
            text: what is measured.
            label: the one label, empty for none.
            values: its values.
        """
        self._name, self._text, self._label = name, text, label
        self.series = {value: Seconds() for value in values}
        registry.register(self)

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """The series as the library exports them."""
        labels = [self._label] if self._label else []
        family = HistogramMetricFamily(self._name, self._text, labels=labels)
        bounds = [*(f"{bound:g}" for bound in BUCKETS), "+Inf"]
        for value, series in self.series.items():
            buckets = [
                (bound, float(count)) for bound, count in zip(bounds, accumulate(series.counts), strict=True)
            ]
            family.add_metric([value] if self._label else [], buckets, series.total)
        yield family


class Registrar:
    """Makes a service's counters and gauges on one registry; labelled ones are resolved at once."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def counter(self, name: str, text: str) -> Counter:
        """A counter without labels."""
        return Counter(name, text, registry=self._registry)

    def gauge(self, name: str, text: str) -> Gauge:
        """A gauge without labels."""
        return Gauge(name, text, registry=self._registry)

    def counters(self, name: str, text: str, label: str, values: Iterable[str]) -> dict[str, Counter]:
        """A counter for each value of its one label, all there from the start."""
        made = Counter(name, text, [label], registry=self._registry)
        return {value: made.labels(value) for value in values}


class Calls:
    """The calls of one method."""

    __slots__ = ("codes", "ok", "seconds")

    def __init__(self, seconds: Seconds) -> None:
        self.seconds = seconds
        self.ok = 0
        self.codes = {code.name: 0 for code in grpc.StatusCode if code is not grpc.StatusCode.OK}

    def ended(self, code: grpc.StatusCode, seconds: float) -> None:
        """Count one call."""
        if code is grpc.StatusCode.OK:
            self.ok += 1
        else:
            self.codes[code.name] += 1
        self.seconds.observe(seconds)


class RpcMetrics(Collector):
    """Calls by method and by the code they ended with.

    Attributes:
        methods: the calls of each method.
    """

    def __init__(self, registry: CollectorRegistry, methods: Iterable[str]) -> None:
        text = "Time from a call's start to its end; of a stream, to its last message."
        seconds = Histogram(registry, "shengji_rpc_seconds", text, "method", methods)
        self.methods = {name: Calls(series) for name, series in seconds.series.items()}
        registry.register(self)

    def collect(self) -> Iterator[CounterMetricFamily]:
        """The counts as the library exports them."""
        labels = ["method", "code"]
        family = CounterMetricFamily("shengji_rpc_calls", "Calls that ended, by status.", labels=labels)
        for name, calls in self.methods.items():
            for code, count in (("OK", calls.ok), *calls.codes.items()):
                family.add_metric([name, code], count)
        yield family


def build_info(registry: CollectorRegistry, **labels: str) -> None:
    """Say once what runs: versions and builds as the labels of a gauge that is 1."""
    Gauge("shengji_build_info", "What runs here.", list(labels), registry=registry).labels(**labels).set(1)


def export(registry: CollectorRegistry, address: str) -> int | None:
    """Serve the registry over HTTP on ``host:port`` (an empty address: nowhere) and return the port."""
    if not address:
        return None
    host, port = split_address(address)
    server, _ = start_http_server(port, host, registry)
    return int(server.server_port)
