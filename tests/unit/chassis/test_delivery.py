"""Where a message is stored is read from the subject of its ack, in both of its forms."""

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from wayline.chassis import Delivery, stored_at


@pytest.mark.parametrize(
    "reply",
    ["$JS.ACK.EVENTS.tracing.3.17.5.1700000000000000000.9", "$JS.ACK.hub.A1b2.EVENTS.tracing.3.17.5.17.9.r4nd0m"],
)
def test_a_message_knows_its_stream_position_with_and_without_a_domain(reply: str):
    message = Msg(Client(), subject="events.acme.j1", reply=reply, data=b"{}")

    delivery = Delivery.of(message)

    assert (delivery.stream, delivery.consumer, delivery.deliveries) == ("EVENTS", "tracing", 3)
    assert stored_at(message) == delivery.sequence == 17
