"""Why a certificate was not accepted is said in plain words, with the person who must act."""

import ssl

import pytest

from mulligan.text.certificates import (
    GITHUB_TRUST,
    TRUST,
    CertificateFault,
    CertificateProblem,
    certificate_fault,
    certificate_fault_in,
    says_untrusted,
)

pytestmark = pytest.mark.pure

P = CertificateProblem


def refused(code: int, message: str = "OpenSSL's words") -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError()
    error.verify_code, error.verify_message = code, message
    return error


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        (9, P.NOT_YET_VALID),
        (10, P.EXPIRED),
        (18, P.UNTRUSTED),
        (19, P.UNTRUSTED),
        (20, P.UNTRUSTED),
        (62, P.OTHER_NAME),
        (64, P.OTHER_NAME),
    ],
)
def test_openssls_code_names_the_problem(code: int, problem: CertificateProblem) -> None:
    assert certificate_fault(refused(code)) == CertificateFault(problem)


def test_another_code_keeps_openssls_words() -> None:
    fault = certificate_fault(refused(92, "CA cert does not include key usage extension"))
    assert fault
    assert fault.explain(TRUST) == (
        "is not valid (CA cert does not include key usage extension); the server's operator must "
        "replace it"
    )


def test_the_cause_is_found_behind_the_errors_of_libraries() -> None:
    outer, middle = OSError("SSL: CERTIFICATE_VERIFY_FAILED"), ValueError()
    outer.__cause__, middle.__context__ = middle, refused(10)
    assert certificate_fault(outer) == CertificateFault(P.EXPIRED)
    assert certificate_fault(OSError("certificate verify failed")) is None
    assert certificate_fault(None) is None


GNUTLS = "server certificate verification failed. CAfile: /etc/ssl/certs/x.crt CRLfile: none"
OPENSSL = "SSL certificate problem: "


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (GNUTLS, P.UNTRUSTED_OR_EXPIRED),
        (f"{OPENSSL}unable to get local issuer certificate", P.UNTRUSTED),
        (f"{OPENSSL}unable to get issuer certificate", P.UNTRUSTED),
        (f"{OPENSSL}unable to verify the first certificate", P.UNTRUSTED),
        (f"{OPENSSL}self signed certificate", P.UNTRUSTED),
        (f"{OPENSSL}self-signed certificate in certificate chain", P.UNTRUSTED),
        (f"{OPENSSL}certificate has expired", P.EXPIRED),
        (f"{OPENSSL}certificate is not yet valid", P.NOT_YET_VALID),
        (f"{OPENSSL}EE certificate key too weak", P.INVALID),
        ("SSL: no alternative certificate subject name matches target host name 'h'", P.OTHER_NAME),
        ("SSL: certificate subject name (o) does not match target host name 'h'", P.OTHER_NAME),
        ("SSL: certificate subject name 'o' does not match target hostname 'h'", P.OTHER_NAME),
    ],
)
def test_gits_words_name_the_problem(words: str, problem: CertificateProblem) -> None:
    fault = certificate_fault_in(f"fatal: unable to access 'https://h/r.git/': {words}")
    assert fault == CertificateFault(problem)


def test_another_message_of_git_is_no_problem_of_a_certificate() -> None:
    assert certificate_fault_in("fatal: unable to access: gnutls_handshake() failed") is None


@pytest.mark.parametrize(
    ("problem", "advice"),
    [
        (P.UNTRUSTED, "set github.ca_file to"),
        (P.UNTRUSTED_OR_EXPIRED, "if it has not expired, set github.ca_file to"),
        (P.EXPIRED, "the server's operator must replace it"),
        (P.INVALID, "the server's operator must replace it"),
        (P.NOT_YET_VALID, "check the clock of this machine"),
        (P.OTHER_NAME, "check the configured address, else the server's operator must fix it"),
    ],
)
def test_the_advice_names_who_must_act(problem: CertificateProblem, advice: str) -> None:
    assert f"{problem.value}; {advice}" in CertificateFault(problem).explain(GITHUB_TRUST)


@pytest.mark.parametrize(
    ("output", "untrusted"),
    [
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed", True),
        ("npm error code SELF_SIGNED_CERT_IN_CHAIN", True),
        ("npm error code UNABLE_TO_GET_ISSUER_CERT_LOCALLY", True),
        ("invalid peer certificate: UnknownIssuer", True),
        ("x509: certificate signed by unknown authority", True),
        ("ERROR: No matching distribution found", False),
    ],
)
def test_how_programs_say_that_they_trust_no_certificate(
    output: str,
    untrusted: bool,  # noqa: FBT001
) -> None:
    assert says_untrusted(output) is untrusted
