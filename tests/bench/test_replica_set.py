"""The comparison can run on a replica set of three."""

from pymongo import WriteConcern

from bench.comparison.servers import running_servers


def test_a_replica_set_of_three_has_a_primary_that_two_secondaries_follow() -> None:
    with running_servers(mongo_nodes=3) as servers:
        members = servers.client.admin.command("replSetGetStatus")["members"]
        assert [each["stateStr"] for each in members] == ["PRIMARY", "SECONDARY", "SECONDARY"]
        everywhere = WriteConcern(w=3, wtimeout=20_000)
        collection = servers.client["replicated"].get_collection("x", write_concern=everywhere)
        assert collection.insert_one({}).acknowledged
