"""The JSON API under requests that a program makes up from its description (`make test-deep`)."""
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportMissingTypeArgument=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import given, settings

from mulligan.domain.issue import IssueRef
from mulligan.domain.stats import LedgerHistory
from mulligan.interfaces.dashboard.openapi import OPERATIONS
from world.dashboards import Dashboard, serve_dashboard, tried

ONE = IssueRef("octo/one", 1)
pytestmark = pytest.mark.deep


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Generator[Dashboard]:
    with serve_dashboard(tmp_path_factory.mktemp("dashboard")) as made:
        made.begin(ONE, "Mend it")
        made.end(ONE, tried(1))
        yield made


@pytest.mark.parametrize("path", [each.path for each in OPERATIONS])
@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_no_request_is_an_error_of_the_server(dashboard: Dashboard, path: str, mode: str) -> None:
    try_requests(dashboard, path, mode)


def test_a_fault_of_a_handler_is_found(tmp_path: Path) -> None:
    from schemathesis.core.failures import FailureGroup, ServerError

    def fail() -> LedgerHistory:
        message = "planted"
        raise ZeroDivisionError(message)

    with (
        serve_dashboard(tmp_path, read_history=fail) as broken,
        pytest.raises(FailureGroup) as found,
    ):
        try_requests(broken, "/stats", "positive")
    assert any(isinstance(each, ServerError) for each in found.value.exceptions)


def try_requests(dashboard: Dashboard, path: str, mode: str) -> None:
    # It takes a second to load, and every process of the tests loads this file.
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    key = {"Authorization": f"Bearer {dashboard.key.secret}"}
    place = f"http://127.0.0.1:{dashboard.port}/api/v1/openapi.json"
    api = schemathesis.openapi.from_url(place, headers=key)
    wanted = [
        not_a_server_error,
        checks.response_schema_conformance,
        checks.status_code_conformance,
    ]

    @settings(max_examples=200)
    @given(api[path]["GET"].as_strategy(generation_mode=schemathesis.GenerationMode(mode)))
    def every_case(case: schemathesis.Case) -> None:
        case.call_and_validate(headers=key, checks=wanted)

    every_case()
