import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo, LocalizedMessage, RetryInfo

from services.pb.table.v1 import reason_pb2
from services.rules.reasons import Reason
from services.shell.errors import RefusedError, code_of, locale_of, status_of


def test_the_reasons_of_the_wire_are_those_of_the_rules():
    wire = set(reason_pb2.Reason.keys()) - {"REASON_UNSPECIFIED"}
    assert wire == {f"REASON_{reason.name}" for reason in Reason}


def test_every_reason_makes_a_status():
    for reason in Reason:
        status = status_of(RefusedError(reason), "shengji.table", "zh")
        assert status.code == code_of(reason).value[0] != 0
        assert status.message


def test_codes_follow_the_kinds_of_refusal():
    assert code_of(Reason.BAD_CARD) is grpc.StatusCode.INVALID_ARGUMENT
    assert code_of(Reason.NOT_YOUR_TURN) is grpc.StatusCode.FAILED_PRECONDITION
    assert code_of(Reason.NOT_SEATED) is grpc.StatusCode.PERMISSION_DENIED
    assert code_of(Reason.STALE_VERSION) is grpc.StatusCode.ABORTED
    assert code_of(Reason.UNKNOWN_TABLE) is grpc.StatusCode.NOT_FOUND
    assert code_of(Reason.CANNOT_RECORD) is grpc.StatusCode.UNAVAILABLE


def test_a_status_says_why_in_both_languages_and_when_to_retry():
    attachment = reason_pb2.Owed(components=[reason_pb2.OwedComponent()])
    refused = RefusedError(Reason.WRONG_COUNT, {"count": 3}, retry_after_s=1.5, attachment=attachment)
    status = status_of(refused, "shengji.table", "zh")
    assert status.message == "Play exactly 3 cards."
    info, text, retry, owed = ErrorInfo(), LocalizedMessage(), RetryInfo(), reason_pb2.Owed()
    for detail, message in zip(status.details, (info, text, retry, owed), strict=True):
        assert detail.Unpack(message)
    assert (info.reason, info.domain, dict(info.metadata)) == ("WRONG_COUNT", "shengji.table", {"count": "3"})
    assert (text.locale, text.message) == ("zh", "须出 3 张牌。")
    assert retry.retry_delay.ToMilliseconds() == 1500
    assert owed == attachment


def test_a_long_detail_is_cut():
    status = status_of(RefusedError(Reason.UNKNOWN_PRESET, {"preset": "x" * 10_000}), "shengji.table", "en")
    assert status.ByteSize() < 2000


@pytest.mark.parametrize(
    ("header", "locale"),
    [
        ("", "en"),
        ("fr", "en"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("en;q=0.5, zh;q=0.6", "zh"),
        ("en, zh", "en"),
        ("zh;q=x, fr", "en"),
    ],
)
def test_the_language_is_the_better_of_two(header, locale):
    assert locale_of(header) == locale


@pytest.mark.parametrize(("wait_s", "told_ms"), [(0.0002, 1), (0.0514, 52), (2.3, 2300), (0.28, 280)])
def test_nobody_is_told_to_come_too_early(wait_s, told_ms):
    retry = RetryInfo()
    status = status_of(RefusedError(Reason.RATE_LIMITED, retry_after_s=wait_s), "shengji.table", "en")
    assert any(detail.Unpack(retry) for detail in status.details)
    assert retry.retry_delay.ToMilliseconds() == told_ms
