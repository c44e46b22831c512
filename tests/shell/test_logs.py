import io
import json
import logging

import pytest

from services.shell.logs import ORDER, Log, fault_of


@pytest.fixture
def lines():
    file = io.StringIO()
    return file, lambda: [json.loads(line) for line in file.getvalue().splitlines()]


def test_the_fields_of_a_line_are_pinned():
    assert (
        *("ts", "level", "service", "event", "table_id", "version", "player_id", "rpc", "reason", "trace_id"),
        *("code", "seconds", "count", "address", "metrics_port", "fault", "detail"),
    ) == ORDER


def test_a_line_is_json_with_known_fields_only(lines):
    file, read = lines
    Log("table", file=file).info("opened", version=3, table_id="tbl_x", cards="SA")
    (line,) = read()
    assert list(line) == ["ts", "level", "service", "event", "table_id", "version"]
    assert (line["level"], line["service"], line["event"]) == ("info", "table", "opened")


def test_lines_below_the_level_are_not_written(lines):
    file, read = lines
    log = Log("table", "warning", file)
    log.info("a")
    log.warning("b")
    assert [line["event"] for line in read()] == ["b"]


def test_a_fault_names_its_kind_and_place_and_never_its_message(lines):
    file, read = lines
    try:
        raise ValueError("SA is not held")
    except ValueError as error:
        fault = fault_of(error)
    assert fault.startswith("ValueError at test_logs.py:")
    assert "SA" not in fault
    log = Log("table", file=file)
    root, kept = logging.getLogger(), logging.getLogger().handlers[:]
    try:
        log.adopt_libraries()
        try:
            raise ValueError("SA is not held")
        except ValueError:
            logging.getLogger("lib").exception("SA went wrong")
    finally:
        root.handlers[:] = kept
    (line,) = read()
    assert (line["event"], line["detail"]) == ("library", "lib")
    assert "SA" not in json.dumps(line)
