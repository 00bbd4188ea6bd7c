"""Forty keys that a judge's error may quote, each in the words of some provider, gateway or client."""

OWN = "Corp7-internal-judge"  # of no known form, in no known place: only the judge knows that it is a key

_TEXTS = {
    "sk-proj-abc123DEF4560001": "Error code: 401 - {{'error': {{'message': 'Incorrect API key provided: {}.'}}}}",
    "sk-abcd********wxyz0002": "Incorrect API key provided: {}. You can find yours at https://example.org.",
    "sk-ant-api03-abcDEF_0003-xyz": "invalid x-api-key ({})",
    "abcd1234efgh0004": "Invalid API key: {}",
    "abcd1234efgh0005": "request failed, token={}",
    "abcd1234efgh0006": "headers: {{'x-api-key': '{}', 'host': 'example.org'}}",
    "abcd1234efgh0007": "Authorization: Bearer {}",
    "abcd1234efgh0008": "{{'Authorization': 'Bearer {}'}}",
    "abcd1234efgh0009": "headers=[(b'authorization', b'Basic {}')]",
    "abcd1234efgh0010": '{{"api_key": "{}"}}',
    "abcd1234efgh0011": '{{"apiKey":"{}"}}',
    "abcd1234efgh0012": "AZURE_OPENAI_API_KEY={}",
    "0123456789abcdef0123456789ab0013": "Ocp-Apim-Subscription-Key: {}",
    "AIzaSyA1234567890abcdefghijklmnopq0014": "https://example.org/v1beta/models?key={}&alt=json",
    "ya29.abcdefghij0015": "401 UNAUTHENTICATED {}",
    "AKIAIOSFODNN7EXAM0016": "The security id {} is invalid",
    "wJalrXUtnFEMI/K7MDENG/bPxRf0017": "aws_secret_access_key={}",
    "abcd1234efgh0018": "SignatureDoesNotMatch: signature={}",
    "hf_abcdefghijklmn0019": "Cannot access gated repo with {}",
    "gsk_abcdefgh12340020": "Invalid credentials {}",
    "xai-abcdefgh12340021": "400 wrong: {}",
    "nvapi-abcdefgh-0022": "403 for {}",
    "pplx-abcdefgh0023": "401 for {}",
    "r8_abcdefgh120024": "You did not pass a valid authentication ({})",
    "ghp_abcdefghijklmn0025": "Bad credentials: {}",
    "xoxb-1234567890-abcd0026": "invalid_auth {}",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2ln0027": "expired: {}",
    "dapi0123456789abcdef0028": "Databricks refused {}",
    "lsv2_pt_abcdefgh_0029": "LangSmith: {}",
    "pcsk_abcdefgh0030": "refused {}",
    "s3cret-pass-0031": "https://user:{}@example.org/v1 refused",
    "s3cret-pass-0032": "postgresql+psycopg://me:{}@db.example.org:5432/x",
    "abcd1234efgh0033": "Server=x;Password={};Database=y",
    "abcd1234efgh0034": "client_secret: '{}'",
    "abcd1234efgh0035": "refresh_token: {}",
    "abcd1234efgh0036": "Cookie: session={}; theme=dark",
    "MIIEowIBAAKCAQEA0037": "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----",
    "3f2b8c9e-1d4a-4b6c-9d8e-0f1a2b3c0038": "your key '{}' has expired",
    "abcd1234efgh0039": "the token {} was revoked",
    OWN: "upstream said: {} is out of funds",
}
KEYS = tuple(_TEXTS)
ERRORS = {key: text.format(key) for key, text in _TEXTS.items()}


def leaked(written: str) -> list[str]:
    """Return the keys of which something stands in a text."""
    return [key for key in KEYS if key in written or key[-8:] in written]
