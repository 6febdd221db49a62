"""schemathesis, unchanged, tries every operation of the admin node's /openapi.json, without its secret."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator

import pytest
import schemathesis
from schemathesis.config import GenerationConfig, ProjectConfig, ProjectsConfig, SchemathesisConfig

from hpwsn.routing.membership.signing import Signer
from hpwsn_admin.openapi import document
from tests.cluster import SECRET, AdminProcess

GENERATION = GenerationConfig(deterministic=True, max_examples=15, database="none")
PROJECT = ProjectConfig(generation=GENERATION, parameters={"query.wait": 0.01, "query.seconds": 0.01})
schema = schemathesis.openapi.from_dict(
    document("http://127.0.0.1"),
    config=SchemathesisConfig(projects=ProjectsConfig(default=PROJECT), seed=1),
)


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdminProcess]:
    with AdminProcess(tmp_path_factory.mktemp("admin") / "data") as running:
        yield running


@schema.parametrize()
def test_every_operation_answers_as_the_document_says(case: schemathesis.Case, admin: AdminProcess) -> None:
    case.call_and_validate(base_url=admin.base)


def test_the_document_names_the_headers_of_a_signature() -> None:
    headers = Signer(SECRET.encode()).headers("PUT", "/x", b"", now=time.time(), nonce=secrets.token_hex(8))
    assert set(headers) == {
        scheme["name"] for scheme in document("")["components"]["securitySchemes"].values()
    }
