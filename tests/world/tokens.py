"""Made-up tokens of each kind, as long as real ones."""

KEY_LINE = "MIIEpAIBAAKCAQEA7bq+/3Zk0N1" * 2
END = "-----END RSA PRIVATE KEY-----"
KEY = f"-----BEGIN RSA PRIVATE KEY-----\n{KEY_LINE}\n{KEY_LINE}\nabc=\n{END}"


def letters(count: int) -> str:
    return "aB3dE5gH7j" * (count // 10) + "k" * (count % 10)


OF_SERVICES = {
    f"ghp_{letters(36)}": "GitHub token",
    f"gho_{letters(36)}": "GitHub token",
    f"ghs_{letters(36)}": "GitHub token",
    f"github_pat_{letters(22)}_{letters(59)}": "GitHub token",
    f"sk-ant-api03-{letters(93)}-AA": "Anthropic key",
    f"sk-proj-{letters(20)}T3BlbkFJ{letters(20)}": "OpenAI key",
    f"AIza{letters(35)}": "Google API key",
    f"ya29.{letters(60)}": "Google token",
    f"GOCSPX-{letters(28)}": "Google secret",
    "AKIAIOSFODNN7EXAMPLE": "AWS key",
    "ASIAIOSFODNN7EXAMPLE": "AWS key",
    "ACCAIOSFODNN7EXAMPLE": "AWS key",
    f"xoxb-1234567890-{letters(24)}": "Slack token",
    f"xapp-1-A012-1234567890-{letters(24)}": "Slack token",
    f"npm_{letters(36)}": "npm token",
    "_authToken=01234567-89ab-cdef-0123-456789abcdef": "npm token",
    f"pypi-AgEIcHlwaS5vcmc{letters(100)}": "PyPI token",
    f"glpat-{letters(20)}": "GitLab token",
    f"glagent-{letters(50)}": "GitLab token",
    f"GR1348941{letters(20)}": "GitLab token",
    f"hf_{letters(34)}": "Hugging Face token",
    f"sk_live_{letters(24)}": "Stripe key",
    f"rk_live_{letters(24)}": "Stripe key",
    f"SG.{letters(22)}.{letters(43)}": "SendGrid key",
    f"sq0csp-{letters(43)}": "Square token",
    f"AccountKey={letters(86)}==": "Azure storage key",
}
"""Tokens of services, and what a guard calls them."""

TOKENS = [
    *OF_SERVICES,
    f"sk-{letters(48)}",
    f"eyJhbGciOiJIUzI1NiJ9.eyJ{letters(30)}.{letters(43)}",
    KEY,
    KEY.replace("\n", "\\n"),
    KEY.replace("RSA ", "OPENSSH "),
]
