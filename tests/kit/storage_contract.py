"""What every storage of the registry must hold to: subclass it, and give `opening`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from master.registry.base import MAX_KEY_BYTES, MAX_RECORD_BYTES, Storage
from mesos_py.errors import InternalError, Superseded, TooLarge

Open = Callable[[], Storage]


class StorageContract:
    @pytest.fixture
    def opening(self) -> Open:
        """Opens one more storage at the place of this test."""
        raise NotImplementedError

    @pytest.fixture
    async def opened(self, opening) -> AsyncIterator[Open]:
        """The same; all that were opened are closed in the end."""
        made: list[Storage] = []

        def one_more() -> Storage:
            made.append(opening())
            return made[-1]

        yield one_more
        for each in made:
            await each.close()

    # ---- Claims ----------------------------------------------------------------------

    async def test_the_first_claim_finds_nothing(self, opened):
        claimed = await opened().claim()
        assert (claimed.epoch, claimed.records) == (1, {})

    async def test_each_claim_has_a_newer_epoch(self, opened):
        first, second = opened(), opened()
        assert (await first.claim()).epoch == 1
        assert (await second.claim()).epoch == 2
        assert (await first.claim()).epoch == 3

    async def test_a_claim_goes_above_what_it_is_told_and_never_back(self, opened):
        storage = opened()
        assert (await storage.claim(41)).epoch == 42
        assert (await storage.claim(7)).epoch == 43
        assert (await opened().claim()).epoch == 44

    async def test_epochs_of_sixty_bits_are_kept(self, opened):
        assert (await opened().claim(2**61)).epoch == 2**61 + 1
        assert (await opened().claim()).epoch == 2**61 + 2

    async def test_an_epoch_that_has_no_next_one_is_refused(self, opened):
        storage = opened()
        with pytest.raises(InternalError, match="there is no epoch after"):
            await storage.claim(2**62)
        assert (await storage.claim()).epoch == 1

    # ---- Writes ----------------------------------------------------------------------

    async def test_what_was_written_is_read_by_the_next_claim(self, opened):
        storage = opened()
        await storage.claim()
        await storage.write([{"agent/1": b"one", "weight/a": b""}, {"agent/2": b"two"}])
        written = {"agent/1": b"one", "agent/2": b"two", "weight/a": b""}
        assert (await storage.claim()).records == written
        assert (await opened().claim()).records == written

    async def test_later_operations_replace_and_remove(self, opened):
        storage = opened()
        await storage.claim()
        await storage.write([{"agent/1": b"a", "agent/2": b"a"}, {"agent/1": b"b"}])
        await storage.write([{"agent/2": None, "agent/3": b"c"}, {"agent/3": None}])
        assert (await opened().claim()).records == {"agent/1": b"b"}

    async def test_what_was_removed_can_come_back(self, opened):
        storage = opened()
        await storage.claim()
        await storage.write([{"agent/1": b"a"}, {"agent/1": None}, {"agent/1": b"b"}])
        assert (await opened().claim()).records == {"agent/1": b"b"}

    async def test_removing_what_is_not_there_does_nothing(self, opened):
        storage = opened()
        await storage.claim()
        await storage.write([{"agent/1": None}, {}])
        assert (await opened().claim()).records == {}

    async def test_writing_nothing_does_nothing(self, opened):
        storage = opened()
        await storage.claim()
        await storage.write([])
        assert (await opened().claim()).records == {}

    async def test_any_bytes_and_any_text(self, opened):
        storage = opened()
        await storage.claim()
        records = {
            "weight/eng/äöü 🚀": bytes(range(256)),
            "weight/*": b"\0",
            "weight/a'b\"c;--\n/../%s": b"x",
            "maintenance": b"",
        }
        await storage.write([records])
        assert (await opened().claim()).records == records

    async def test_many_operations_of_many_sizes(self, opened):
        storage = opened()
        await storage.claim()
        operations = [{f"agent/{n}": bytes([n % 256]) * (n % 700)} for n in range(3000)]
        await storage.write(operations)
        await storage.write([{f"agent/{n}": None} for n in range(0, 3000, 2)])
        expected = {f"agent/{n}": bytes([n % 256]) * (n % 700) for n in range(1, 3000, 2)}
        assert (await opened().claim()).records == expected

    async def test_nothing_is_written_without_a_claim(self, opened):
        storage = opened()
        with pytest.raises(InternalError, match="not claimed"):
            await storage.write([{"agent/1": b"a"}])
        with pytest.raises(InternalError, match="not claimed"):
            await storage.raise_epoch(5)
        claimed = await opened().claim()
        assert (claimed.epoch, claimed.records) == (1, {})

    # ---- The fence -------------------------------------------------------------------

    async def test_an_older_leadership_changes_nothing(self, opened):
        first, second = opened(), opened()
        await first.claim()
        await first.write([{"agent/1": b"first"}])
        await second.claim()
        with pytest.raises(Superseded) as caught:
            await first.write([{"agent/1": b"late", "agent/2": b"late"}])
        assert (caught.value.epoch, caught.value.newer) == (1, 2)
        with pytest.raises(Superseded):
            await first.raise_epoch(100)
        await second.write([{"agent/3": b"second"}])
        claimed = await opened().claim()
        assert claimed.epoch == 3
        assert claimed.records == {"agent/1": b"first", "agent/3": b"second"}

    async def test_an_older_leadership_is_not_told_that_nothing_was_to_be_done(self, opened):
        first, second = opened(), opened()
        await first.claim()
        await first.write([{"agent/1": b"first"}])
        await second.claim()
        await second.write([{"agent/1": b"second", "agent/2": b"second"}])
        # As far as it knows this changes nothing; it is not so any more.
        for operation in ({"agent/1": b"first"}, {"agent/2": None}):
            with pytest.raises(Superseded):
                await first.write([operation])

    async def test_who_was_superseded_can_lead_again(self, opened):
        first, second = opened(), opened()
        await first.claim()
        await second.claim()
        await second.write([{"agent/1": b"second"}])
        with pytest.raises(Superseded):
            await first.write([{"agent/1": b"late"}])
        assert (await first.claim()).records == {"agent/1": b"second"}
        await first.write([{"agent/1": b"first"}])
        assert (await opened().claim()).records == {"agent/1": b"first"}

    async def test_a_leadership_raises_its_own_epoch_and_goes_on(self, opened):
        first, second = opened(), opened()
        await first.claim()
        assert await first.raise_epoch(40) == 41
        await first.write([{"agent/1": b"a"}])
        assert await first.raise_epoch(3) == 42
        claimed = await second.claim()
        assert (claimed.epoch, claimed.records) == (43, {"agent/1": b"a"})
        with pytest.raises(Superseded) as caught:
            await first.write([{"agent/1": b"late"}])
        assert (caught.value.epoch, caught.value.newer) == (42, 43)

    # ---- Limits ----------------------------------------------------------------------

    async def test_a_record_that_is_too_large_is_named_and_nothing_of_its_operation_done(
        self, opened
    ):
        storage = opened()
        await storage.claim()
        with pytest.raises(TooLarge, match="record 'agent/big'") as caught:
            await storage.write([{"agent/1": b"a", "agent/big": bytes(MAX_RECORD_BYTES + 1)}])
        assert caught.value.fields["record"] == "agent/big"
        with pytest.raises(TooLarge, match="a key has at most"):
            await storage.write([{"agent/" + "x" * MAX_KEY_BYTES: b"a"}])
        assert (await opened().claim()).records == {}

    # ---- The end ---------------------------------------------------------------------

    async def test_closing_twice_does_nothing(self, opened):
        storage = opened()
        await storage.claim()
        await storage.close()
        await storage.close()
