"""Ports that no one else was given."""

import socket
from concurrent.futures import ProcessPoolExecutor

from rota.dev import ports


def _find(count: int) -> list[int]:
    return [ports.find() for _ in range(count)]


def test_processes_that_start_together_get_different_ports() -> None:
    with ProcessPoolExecutor(4) as processes:
        found = [port for some in processes.map(_find, [100] * 4) for port in some]
    assert len(set(found)) == 400
    assert all(ports.LOWEST <= port <= ports.HIGHEST for port in found)


def test_a_port_in_use_is_left_out() -> None:
    with socket.socket() as listener:
        port = ports.find()
        listener.bind(("127.0.0.1", port))
        listener.listen()
        assert not ports.is_free(port)
        assert ports.find(port) != port


def test_neighbours_of_a_port_are_given_late() -> None:
    first = ports.find()
    assert all(abs(port - first) > 20 for port in _find(100))
