"""One folder, one server."""
from faults import Hurt, refusal
from served import texts


def test_a_second_server_on_a_folder_is_refused(server):
    server.enqueue({"text": "first"})
    for _ in range(3):
        said = refusal(server.folder)
        assert str(server.folder) in said and "another process" in said, said
    server.enqueue({"text": "second"})
    assert texts(server.dequeue()) == ["first", "second"]
    server.restart()
    assert server.stats()["total"] == 2


def test_of_many_that_start_at_once_one_serves(server):
    """Also right after the owner was killed."""
    folder = server.folder
    server.enqueue({"text": "x"})
    server.kill()
    server.start()
    assert refusal(folder)
    assert texts(server.dequeue()) == ["x"]
    server.stop()
    with Hurt(folder) as next_:
        assert next_.stats()["leased"] == 1
