"""For people who write frameworks, executors and allocators: fakes, builders, contracts.

`fake_master.FakeMaster` and `fake_agent.FakeAgent` do what a test tells them, over real
gRPC; `fake_cluster.FakeCluster` runs tasks that take no time; `builders` make messages;
`allocator_contract` is the suite that every allocator must pass.
"""
