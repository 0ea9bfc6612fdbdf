"""Against a namenode of a few lines, with answers as Hadoop's documentation has them."""

import asyncio

import pytest
from aiohttp import web

from frameworks.mapreduce.data.inputs import InputFile
from frameworks.mapreduce.data.locations import Block
from frameworks.mapreduce.data.webhdfs import WebHdfs

BLOCKS = {
    "/data/a b.txt": [(0, 128, ["node1", "node2"]), (128, 72, ["node3"])],
    "/data/q?#%41.txt": [(0, 10, ["node2"])],
}


class NameNode:
    """old: knows only the older operation.  silent: answers when the test ends."""

    def __init__(self, *, old=False, silent=False, garbage=False):
        self.old = old
        self.may_answer = asyncio.Event()
        if not silent:
            self.may_answer.set()
        self.garbage = garbage
        self.asked: list[str] = []

    async def answer(self, request):
        operation = request.query["op"]
        path = request.path.removeprefix("/webhdfs/v1")
        self.asked.append(f"{operation} {path} {request.query.get('user.name', '')}".rstrip())
        await self.may_answer.wait()
        if self.garbage:
            return web.Response(text="<html>a page of a proxy</html>")
        if operation != "GET_BLOCK_LOCATIONS" and self.old:
            return self.error(400, "IllegalArgumentException", f"No enum constant {operation}")
        if path not in BLOCKS:
            return self.error(404, "FileNotFoundException", f"File does not exist: {path}")
        shown = self.older if operation == "GET_BLOCK_LOCATIONS" else self.newer
        return web.json_response(shown(BLOCKS[path]))

    @staticmethod
    def error(status, name, message):
        told = {"exception": name, "javaClassName": f"java.io.{name}", "message": message}
        return web.json_response({"RemoteException": told}, status=status)

    @staticmethod
    def newer(blocks):
        found = [
            {
                "cachedHosts": [],
                "corrupt": False,
                "hosts": hosts,
                "length": length,
                "names": [f"{host}:9866" for host in hosts],
                "offset": offset,
                "storageTypes": ["DISK"] * len(hosts),
                "topologyPaths": [f"/default-rack/{host}:9866" for host in hosts],
            }
            for offset, length, hosts in blocks
        ]
        return {"BlockLocations": {"BlockLocation": found}}

    @staticmethod
    def older(blocks):
        found = [
            {
                "block": {"blockId": 1073741825, "blockPoolId": "BP-1", "numBytes": length},
                "blockToken": {"urlString": "AAAA"},
                "cachedLocations": [],
                "isCorrupt": False,
                "locations": [
                    {"hostName": host, "ipAddr": "10.0.0.1", "networkLocation": "/default-rack"}
                    for host in hosts
                ],
                "startOffset": offset,
                "storageTypes": ["DISK"],
            }
            for offset, length, hosts in blocks
        ]
        located = {"fileLength": 200, "isLastBlockComplete": True, "locatedBlocks": found}
        return {"LocatedBlocks": located}


@pytest.fixture
async def serve():
    started = []

    async def start(namenode):
        app = web.Application()
        app.router.add_get("/webhdfs/v1/{path:.*}", namenode.answer)
        runner = web.AppRunner(app)
        started.append((namenode, runner))
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return runner.addresses[0][1]

    yield start
    for namenode, runner in started:
        namenode.may_answer.set()
        await runner.cleanup()


def hdfs(path, size=200):
    return InputFile(f"hdfs://nn:8020{path}", size, True)


async def located(locator, *files):
    return await asyncio.to_thread(locator.hosts, files)


@pytest.mark.parametrize("old", [False, True])
async def test_blocks_of_files(serve, old):
    namenode = NameNode(old=old)
    port = await serve(namenode)
    locator = WebHdfs(f"webhdfs://me@127.0.0.1:{port}", {})
    found = await located(
        locator,
        hdfs("/data/empty", 0),
        hdfs("/data/a b.txt"),
        InputFile("file:///data/a b.txt", 200, True),
        hdfs("/data/q?#%41.txt", 10),
        InputFile("webhdfs://nn:9870/data/a b.txt", 200, True),
    )
    a = [Block(0, 128, ("node1", "node2")), Block(128, 72, ("node3",))]
    assert found == [[], a, [], [Block(0, 10, ("node2",))], a]
    operation = "GET_BLOCK_LOCATIONS" if old else "GETFILEBLOCKLOCATIONS"
    wanted = [
        f"{operation} {path} me" for path in ("/data/a b.txt", "/data/q?#%41.txt", "/data/a b.txt")
    ]
    assert sorted(namenode.asked[int(old) :]) == sorted(wanted)


async def test_nothing_to_ask(serve):
    namenode = NameNode()
    port = await serve(namenode)
    found = await located(
        WebHdfs(f"webhdfs://127.0.0.1:{port}", {}), InputFile("s3://b/k", 1, True)
    )
    assert found == [[]]
    assert namenode.asked == []


async def test_a_file_that_is_not_there_does_not_hide_others(serve, caplog):
    port = await serve(NameNode())
    files = [hdfs("/data/a b.txt"), hdfs("/data/gone"), hdfs("/data/a b.txt")]
    found = await located(WebHdfs(f"webhdfs://127.0.0.1:{port}", {}), *files)
    assert [len(blocks) for blocks in found] == [2, 0, 2]
    assert "/data/gone: 404 FileNotFoundException: File does not exist" in caplog.text


async def test_what_nobody_answers_is_not_known(caplog):
    found = await located(WebHdfs("webhdfs://127.0.0.1:1", {}), hdfs("/data/a b.txt"))
    assert found == [[]]
    assert "block locations are not known" in caplog.text


async def test_who_is_no_namenode(serve, caplog):
    port = await serve(NameNode(garbage=True))
    found = await located(WebHdfs(f"webhdfs://127.0.0.1:{port}", {}), hdfs("/data/a b.txt"))
    assert found == [[]]
    assert "DecodeError" in caplog.text


async def test_a_job_does_not_wait_for_ever(serve, caplog):
    port = await serve(NameNode(silent=True))
    locator = WebHdfs(f"webhdfs://127.0.0.1:{port}", {}, budget_s=0.05)
    assert await located(locator, hdfs("/data/a b.txt")) == [[]]
    assert "TimeoutError" in caplog.text
