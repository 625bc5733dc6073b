"""Which tests take a run of their own: `make test-slow` runs what these names begin with.

They restart servers, elect primaries, start whole deployments, or play long campaigns.
"""

SLOW = (
    # whole deployments: `slotlock dev`, processes with workers, simulated crowds
    "devserver", "simulation", "bench", "docs/test_readme.py",
    "cli/test_supervisor.py", "api/server/test_shutdown.py", "deploy/test_container_image.py",
    "api/endpoints/test_health.py::test_metrics_are_summed_over_all_workers_and_survive_them",
    # elections and replica sets
    "infrastructure/mongo/connections", "services/live/test_majority_stalls.py",
    "services/commands/test_unconfirmed_writes.py",
    # servers that stop, freeze or slow down
    "concurrency/test_server_outages.py", "infrastructure/redis/outages",
    "services/admission/test_mongodb_unavailable.py", "services/admission/test_redis_loss.py",
    "services/admission/test_worker_crashes.py", "services/commands/test_group_stalls.py",
    "infrastructure/mongo/indexes/test_index_builds.py", "cli/doctor/test_doctor.py",
    # defects of published designs, with and without the guards whose own tests run in `make test`
    "defects",
    # two versions beside each other, which wait for several sweeps
    "infrastructure/mongo/schema/test_older_version.py",
    # long campaigns and large amounts
    "concurrency/test_campaign_limits.py", "model_based/test_stateful.py",
    "concurrency/test_host_clocks.py", "auth/user_import/test_import_limits.py",
    "auth/user_import/test_user_import.py::test_10_000_users",
    "api/exports/test_export_builder.py::test_up_to_a_thousand_slots",
    "services/admission/test_redis_topologies.py",
)  # fmt: skip
# The same promises as with one server, with more servers.
SLOW_PARAMETERS = ("[Sentinel", "[Cluster", "-Sentinel", "-Cluster")
# Folders of tests that start no server: `make check` runs them.
PURE = (
    "packages", "tests/domain", "tests/graphql/schema", "tests/docs/test_style.py",
    "tests/bench/faults/test_checker.py", "tests/bench/faults/test_corruptions.py",
)  # fmt: skip


def is_slow(node_id: str) -> bool:
    """Return whether a test takes a run of its own."""
    name = node_id.removeprefix("tests/")
    if node_id.startswith(PURE):
        return False
    return name.startswith(SLOW) or any(part in name for part in SLOW_PARAMETERS)
