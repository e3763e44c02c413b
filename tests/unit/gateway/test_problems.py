"""What is wrong with a request, as its sender is told it."""

from wayline.gateway.problem_answers import WrongField, wrong_fields


def test_a_wrong_field_quotes_the_validators_message():
    found = wrong_fields([{"loc": ("window",), "msg": "Value error, it is always hard"}], within="body")

    assert found == [WrongField(field="body.window", message="it is always hard")]
