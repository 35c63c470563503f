"""Say why a server's certificate was not accepted, and who must fix it. Pure."""

import re
import ssl
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

GITHUB_TRUST = (
    "set github.ca_file to the certificates of that authority, or add them to the system's "
    "certificates"
)
"""The advice for GitHub, and for git of GitHub."""

TRUST = (
    "add the certificates of that authority to the system's certificates, or set SSL_CERT_FILE to "
    "a file that contains them"
)
"""The advice for every other server."""

REGISTRY_TRUST = (
    "set sandbox.ca_file to the certificates of that authority, or add them to the system's "
    "certificates"
)
"""The advice for a server that Mulligan's proxy reaches for setup commands and checks."""

COMMAND_TRUST = (
    "A program does not trust a certificate. Set `sandbox.ca_file` in mulligan.yml to a file with "
    "the certificates of its authority. By default, uv and Node ignore the system's certificates."
)
"""The advice for a setup command: many programs have certificates of their own."""

UNTRUSTED_SAID = re.compile(
    r"CERTIFICATE_VERIFY_FAILED|self[-_ ]signed[-_ ]cert|unable[-_ ]to[-_ ]get[-_ ](?:local[-_ ])?"
    r"issuer|certificate signed by unknown authority|UnknownIssuer|unable to verify the first|"
    r"SSL certificate problem|server certificate verification failed|PKIX path building failed",
    re.IGNORECASE,
)
"""How pip, uv, npm, curl, git, cargo, Go and Java say that they do not trust a certificate."""


def says_untrusted(output: str) -> bool:
    """Return whether a program's output says that it did not trust a server's certificate."""
    return bool(UNTRUSTED_SAID.search(output))


class CertificateProblem(Enum):
    """Why a certificate was not accepted; the value completes "the certificate of this host"."""

    UNTRUSTED = "is signed by an authority that this machine does not trust"
    EXPIRED = "has expired"
    NOT_YET_VALID = "is not valid yet"
    OTHER_NAME = "is for another host name"
    UNTRUSTED_OR_EXPIRED = (
        "has expired, or is signed by an authority that this machine does not trust"
    )
    INVALID = "is not valid"


PROBLEMS_OF_CODES = {
    # X509_V_ERR_* in OpenSSL's x509_vfy.h.
    2: CertificateProblem.UNTRUSTED,
    9: CertificateProblem.NOT_YET_VALID,
    10: CertificateProblem.EXPIRED,
    18: CertificateProblem.UNTRUSTED,
    19: CertificateProblem.UNTRUSTED,
    20: CertificateProblem.UNTRUSTED,
    21: CertificateProblem.UNTRUSTED,
    27: CertificateProblem.UNTRUSTED,
    62: CertificateProblem.OTHER_NAME,
    64: CertificateProblem.OTHER_NAME,
}

PROBLEMS_OF_WORDS = (
    # What libcurl says through git, with OpenSSL and with GnuTLS; GnuTLS gives one reason for two.
    (r"SSL: .*certificate subject name.* (?:does not match|matches) target", "OTHER_NAME"),
    (r"SSL certificate problem: .*(?:not yet valid)", "NOT_YET_VALID"),
    (r"SSL certificate problem: .*has expired", "EXPIRED"),
    (r"SSL certificate problem: self[- ]signed", "UNTRUSTED"),
    (r"SSL certificate problem: unable to (?:get (?:local )?issuer|verify the first)", "UNTRUSTED"),
    (r"SSL certificate problem: ", "INVALID"),
    (r"server certificate verification failed", "UNTRUSTED_OR_EXPIRED"),
)


@dataclass(frozen=True, slots=True)
class CertificateFault:
    """A certificate that was not accepted; `detail` is OpenSSL's reason for one that is INVALID."""

    problem: CertificateProblem
    detail: str = ""

    def explain(self, trust: str) -> str:
        """Return what is wrong and the advice, as in "has expired; …".

        `trust` is the advice where the authority is not trusted.
        """
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.problem.value}{detail}; {self._advice(trust)}"

    def _advice(self, trust: str) -> str:
        match self.problem:
            case CertificateProblem.UNTRUSTED:
                return trust
            case CertificateProblem.UNTRUSTED_OR_EXPIRED:
                return f"if it has not expired, {trust}"
            case CertificateProblem.NOT_YET_VALID:
                return "check the clock of this machine"
            case CertificateProblem.OTHER_NAME:
                return "check the configured address, else the server's operator must fix it"
            case CertificateProblem.EXPIRED | CertificateProblem.INVALID:
                return "the server's operator must replace it"
            case _:
                assert_never(self.problem)


def certificate_fault(error: BaseException | None) -> CertificateFault | None:
    """Find a certificate that was not accepted among the causes of an error; None if none."""
    while error and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    if error is None:
        return None
    problem = PROBLEMS_OF_CODES.get(error.verify_code, CertificateProblem.INVALID)
    is_known = problem is not CertificateProblem.INVALID
    return CertificateFault(problem, "" if is_known else error.verify_message)


def certificate_fault_in(output: str) -> CertificateFault | None:
    """Find a certificate that was not accepted in a message of git; None if it names none."""
    for words, name in PROBLEMS_OF_WORDS:
        if re.search(words, output, re.IGNORECASE):
            return CertificateFault(CertificateProblem[name])
    return None
