"""Users in Java's login configurations."""

import pytest
from ottla.broker.sasl.jaas import InvalidLoginError, users_of

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.mark.parametrize(
    ("text", "users"),
    [
        ("", {}),
        (f"{PLAIN} ;", {}),
        (f'{PLAIN} username="admin" password="x";', {}),
        (f'{PLAIN}\n  user_admin="a b"\n  user_alice=hers;\n', {"admin": "a b", "alice": "hers"}),
        (f'{PLAIN} user_a="se\\"mi;co\\\\lon=1" ;', {"a": 'se"mi;co\\lon=1'}),
        (f'{PLAIN} user_="x";', {"": "x"}),
    ],
)
def test_each_user_option_is_a_password(text: str, users: dict[str, str]) -> None:
    assert users_of(text) == users


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        "org.example.Module;",
        f'{PLAIN} user_a="x"',
        f'{PLAIN} user_a="x;',
        f"{PLAIN} user_a;",
        f"{PLAIN} =x;",
        f"{PLAIN} a=1; {PLAIN} b=2;",
        "Module perhaps user_a=x;",
    ],
)
def test_what_is_no_login_configuration_is_refused_without_its_passwords(text: str) -> None:
    with pytest.raises(InvalidLoginError) as refusal:
        users_of(text)
    assert "user_a" not in str(refusal.value)
