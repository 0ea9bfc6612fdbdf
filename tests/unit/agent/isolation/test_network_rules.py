"""The table of nftables as messages: complete, in one piece, and read back as written."""

from ipaddress import IPv4Address, IPv4Network

from hypothesis import given
from hypothesis import strategies as st
from pyroute2.netlink.nfnetlink import nftsocket as nft

from agent.isolation.network import rules
from agent.isolation.network.asked import PortMapping
from agent.isolation.network.rules import Entry

ADDRESS = IPv4Address("10.213.0.2")
NETWORK = IPv4Network("10.213.0.0/16")
PORT = st.integers(1, 65535)
ENTRY = st.builds(Entry, st.sampled_from(["tcp", "udp"]), PORT, st.ip_addresses(v=4), PORT)


def kinds(messages):
    return [message["header"]["type"] & 0xFF for message in messages]


def through_the_wire(message):
    message.encode()
    decoded = type(message)(message.data)
    decoded.decode()
    return decoded


def test_a_batch_begins_and_ends():
    made = rules.batch(rules.drop_table("t"))
    assert [message["header"]["type"] for message in (made[0], made[-1])] == [0x10, 0x11]


def test_a_table_is_removed_whether_it_is_there_or_not():
    assert kinds(rules.drop_table("t")) == [nft.NFT_MSG_NEWTABLE, nft.NFT_MSG_DELTABLE]


def test_a_new_table_takes_the_place_of_the_old_one():
    made = rules.new_table("mesos-py/A1", "mpb0", NETWORK, [Entry("tcp", 1, ADDRESS, 2)])
    assert kinds(made) == [
        nft.NFT_MSG_NEWTABLE,
        nft.NFT_MSG_DELTABLE,
        nft.NFT_MSG_NEWTABLE,
        nft.NFT_MSG_NEWSET,
        *[nft.NFT_MSG_NEWCHAIN] * 4,
        *[nft.NFT_MSG_NEWRULE] * 5,
        nft.NFT_MSG_NEWSETELEM,
    ]
    for message in made:
        message.encode()


def test_nothing_to_add_or_remove_is_no_message():
    assert rules.add("t", []) == rules.remove("t", []) == []


def test_elements_are_what_nft_would_write():
    (message,) = rules.add("t", [Entry("tcp", 31000, ADDRESS, 80)])
    (element,) = through_the_wire(message).get_attr("NFTA_SET_ELEM_LIST_ELEMENTS")
    key = element.get_attr("NFTA_SET_ELEM_KEY").get_attr("NFTA_DATA_VALUE")
    data = element.get_attr("NFTA_SET_ELEM_DATA").get_attr("NFTA_DATA_VALUE")
    assert key == b"\x06\0\0\0" + b"\x79\x18\0\0"
    assert data == b"\x0a\xd5\x00\x02" + b"\x00\x50\0\0"


def test_more_elements_than_one_attribute_holds_are_split():
    many = [Entry("tcp", port, ADDRESS, port) for port in range(1, 2 * rules.CHUNK + 2)]
    assert len(rules.add("t", many)) == len(rules.remove("t", many)) == 3
    for message in rules.add("t", many):
        message.encode()
        assert len(message.data) < 65536


def test_mappings_become_entries_of_the_containers_address():
    assert rules.entries([PortMapping("udp", 31000, 53)], ADDRESS) == [
        Entry("udp", 31000, ADDRESS, 53)
    ]


@given(st.lists(ENTRY, max_size=20))
def test_entries_are_read_as_they_were_written(entries):
    answers = [through_the_wire(message) for message in rules.add("t", entries)]
    assert rules.read(answers) == entries


def test_an_element_of_another_protocol_is_not_ours():
    (message,) = rules.add("t", [Entry("tcp", 31000, ADDRESS, 80)])
    answer = through_the_wire(message)
    element = answer.get_attr("NFTA_SET_ELEM_LIST_ELEMENTS")[0]
    key = element.get_attr("NFTA_SET_ELEM_KEY")
    key["attrs"][0] = ("NFTA_DATA_VALUE", b"\x84" + bytes(7))
    assert rules.read([answer]) == []
