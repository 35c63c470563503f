"""The JSON API under requests that a program makes up from its description (`make test-deep`)."""
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportMissingTypeArgument=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Generator

import pytest
import schemathesis
from hypothesis import given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from mulligan.domain.issue import IssueRef
from mulligan.interfaces.dashboard.openapi import OPERATIONS
from world.dashboards import Dashboard, serve_dashboard, tried

ONE = IssueRef("octo/one", 1)
CHECKS = [not_a_server_error, response_schema_conformance, status_code_conformance]

pytestmark = pytest.mark.deep


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Generator[Dashboard]:
    with serve_dashboard(tmp_path_factory.mktemp("dashboard")) as made:
        made.begin(ONE, "Mend it")
        made.end(ONE, tried(1))
        yield made


@pytest.fixture
def api(dashboard: Dashboard) -> schemathesis.BaseSchema:
    key = {"Authorization": f"Bearer {dashboard.key.secret}"}
    place = f"http://127.0.0.1:{dashboard.port}/api/v1/openapi.json"
    return schemathesis.openapi.from_url(place, headers=key)


@pytest.mark.parametrize("path", [each.path for each in OPERATIONS])
@pytest.mark.parametrize("mode", list(GenerationMode))
def test_no_request_is_an_error_of_the_server(
    api: schemathesis.BaseSchema, dashboard: Dashboard, path: str, mode: GenerationMode
) -> None:
    key = {"Authorization": f"Bearer {dashboard.key.secret}"}

    @settings(max_examples=200)
    @given(api[path]["GET"].as_strategy(generation_mode=mode))
    def every_case(case: schemathesis.Case) -> None:
        case.call_and_validate(headers=key, checks=CHECKS)

    every_case()
