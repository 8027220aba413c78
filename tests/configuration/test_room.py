"""When a store of the configuration is full."""

from weft.cores.configuration.store import Room, Store

A, B = "/CONFIG/web/a", "/CONFIG/web/b"


def test_a_store_with_all_its_keys_takes_another_value_of_one_and_no_further_key() -> None:
    store = Store(Room(keys=1, bytes=999))
    assert store.has_room(A, b"1")
    store.apply(A, 1, b"1", 0)
    assert (True, False) == (store.has_room(A, b"2"), store.has_room(B, b"2"))


def test_a_store_takes_as_many_bytes_as_it_has_room_for() -> None:
    store = Store(Room(keys=9, bytes=28))
    store.apply(A, 1, b"1", 0)
    assert (True, False) == (store.has_room(B, b"2"), store.has_room(B, b"22"))
