"""The Python client: it says what the service says, and asks again where that is safe."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from banditree.client import Client, ServiceError
from banditree.errors import InvalidValue
from tests.support.serving import serving


def test_the_client_does_all_that_the_service_can(tmp_path: Path) -> None:
    with serving(tmp_path, "--token", "secret") as server:
        client = Client(server.url, token="secret")
        decision = client.decide(exclude=["s1"], k=2, id="a b?#")
        assert client.decide(exclude=["s1"], k=2, id="a b?#") == decision
        assert client.reward("a b?#", 1, position=1) == "applied"
        assert client.reward("a b?#", 1, position=1) == "duplicate"
        assert client.look_up("a b?#")["rewards"] == [None, 1]
        client.withdraw(client.decide()["id"])
        gone = next(arm for arm in ("s1", "s2", "s3") if arm not in decision["arms"])  # its evidence would go with it
        assert client.change_arms(add={"n1": ["hats"]}, remove=[gone])["arms"] == 6
        assert client.tree()[0]["plays"] == 1
        with pytest.raises(ServiceError, match="another request") as refused:
            client.decide(id="a b?#")
        assert refused.value.code == 409
        with pytest.raises(ServiceError, match="token"):
            Client(server.url).decide()


def test_a_request_that_gets_no_answer_is_sent_again_with_the_same_id() -> None:
    seen: list[bytes] = []
    answer = b'{"id": "x", "arm": "a"}'
    replies = [b"", b"HTTP/1.1 503 Away\r\ncontent-length: 0\r\n\r\n"]
    replies.append(b"HTTP/1.1 201 Created\r\ncontent-length: %d\r\n\r\n%s" % (len(answer), answer))
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            for reply in replies:
                connection, _ = listening.accept()
                with connection:
                    asked = b""
                    while not asked.endswith(b"}"):
                        asked += connection.recv(65536)
                    seen.append(asked.partition(b"\r\n\r\n")[2])
                    connection.sendall(reply)

        thread = threading.Thread(target=serve)
        thread.start()
        decision = Client(f"http://127.0.0.1:{listening.getsockname()[1]}").decide(k=3)
        thread.join(10)
    assert decision == {"id": "x", "arm": "a"}
    assert len(seen) == 3
    assert len(set(seen)) == 1
    assert b'"id"' in seen[0]


def test_an_address_must_say_how_to_get_there() -> None:
    with pytest.raises(InvalidValue, match="must start with http"):
        Client("127.0.0.1:8000")


def test_a_service_that_is_not_there_is_said_to_be_so() -> None:
    with pytest.raises(ServiceError, match="did not answer") as failed:
        Client("http://127.0.0.1:1", retries=1).decide()
    assert failed.value.code is None
