"""Which tests take a run of their own: `make test-slow` runs what these names begin with."""

SLOW = (
    # whole deployments: `slotlock dev`, processes with workers, simulated crowds, measurements
    "bench/test_", "bench/faults/test_fences.py", "bench/faults/test_links.py",
    "bench/faults/test_skewed_clock.py", "devserver", "docs/test_readme.py", "simulation",
    "api/endpoints/test_health.py::test_metrics_are_summed_over_all_workers_and_survive_them",
    "api/server/test_shutdown.py::test_a_stop_accepts",
    "api/server/test_shutdown.py::test_a_stop_closes",
    "api/server/test_shutdown.py::test_a_socket", "api/server/test_shutdown.py::test_workers",
    "cli/test_supervisor.py::test_a_", "cli/test_supervisor.py::test_processes",
    "cli/test_main.py::test_workers_that_cannot_start_end_with_a_failure",
    "cli/test_main.py::test_a_closed_output_pipe_causes_no_traceback",
    "cli/test_backup.py::test_a_backup_during_bookings",
    "cli/test_backup.py::test_a_restore_refuses",
    "cli/test_queue.py::test_a_worker_shows_the_tickets",
    "deploy/test_container_image.py", "deploy/test_wheels.py", "deploy/test_whole_path.py",
    "deploy/test_published_images.py::test_the_user_that_compose_creates",
    # long scenes in a browser
    "board/members/test_lists.py", "board/members/test_several.py", "board/members/test_teams.py",
    "board/test_accessibility.py", "board/test_guide.py",
    "board/test_member_views.py", "board/test_organizer.py", "board/test_organizers.py",
    "board/test_rush.py", "board/organizers", "board/test_wishes.py",
    "board/accounts/test_places.py",
    "board/accounts/test_mailed_links.py::test_organizers_see_whom_invitations_did_not_reach",
    "board/accounts/test_mailed_links.py::test_a_campaign_has_its_reminder",
    "board/accounts/test_mailed_links.py::test_everybody_with_a_place_gets_an_announcement",
    "board/accounts/test_mailed_links.py::test_users_choose_their_mails_in_the_account",
    "board/accounts/test_mailed_links.py::test_an_admin_sends_all_failed_mails_again",
    "board/test_booking.py::test_two_tabs_share_the_session_and_show_the_same_booking",
    "board/test_booking.py::test_who_waits_in_line_gets_the_place_that_is_given_back",
    "board/test_booking.py::test_a_session_that_ended_elsewhere_ends_on_the_page",
    "board/test_booking.py::test_a_page_stays_true_while_the_server_dies_and_another_one_starts",
    "board/test_booking.py::test_a_page_whose_sockets_are_refused_reads_again",
    "board/test_booking.py::test_the_keyboard_alone_books_a_course",
    "board/test_faults.py::test_a_full_cache_costs_only_the_page_without_a_network",
    "board/test_faults.py::test_a_refused_operation_says_that_the_role_was_taken",
    "board/test_faults.py::test_a_hold_outlives_a_reload_and_its_end_is_announced",
    "board/test_faults.py::test_back_and_a_network_that_returns_show_what_is_true_now",
    "board/test_faults.py::test_an_error_of_the_page_has_an_id_that_is_in_the_log",
    # scenes in a browser whose promise other scenes of `make test` share, or tests of the server
    "board/accounts/test_mailed_links.py::test_an_organizer_mails_invitations",
    "board/accounts/test_shared_browsers.py::test_a_form_is_not_sent_on",
    "board/accounts/test_shared_browsers.py::test_marking_all_as_absent",
    "board/accounts/test_shared_browsers.py::test_offline_one_signs_out",
    "board/accounts/test_sign_on.py::test_a_page_that_asks_for_a_password",
    "board/accounts/test_sign_on.py::test_a_provider_that_refuses",
    "board/accounts/test_sign_on.py::test_a_user_links_and_unlinks",
    "board/accounts/test_sign_on.py::test_a_user_with_an_account_is_led",
    "board/accounts/test_sign_on.py::test_a_user_without_a_password",
    "board/accounts/test_sign_on.py::test_an_admin_sees_and_unlinks",
    "board/accounts/test_sign_on.py::test_the_provider_comes_first",
    "board/members/test_news.py::test_a_cancellation_says_why",
    "board/members/test_news.py::test_an_organizer_enters_why",
    "board/members/test_news.py::test_the_page_of_a_cancelled_course",
    "board/test_booking.py::test_a_device_that_is_ahead",
    "board/test_booking.py::test_a_language_fills_its_texts_in",
    "board/test_booking.py::test_only_a_change_of_the_position_that_is_shown_is_said_and_read_where"
    "_more_changes[slot",
    "board/test_booking.py::test_only_a_change_of_the_position_that_is_shown_is_said_and_read_where"
    "_more_changes[week",
    "board/test_booking.py::test_two_devices_of_a_user",
    "board/test_faults.py::test_a_dark_page_is_printed",
    "board/test_faults.py::test_a_link_that_a_program_damaged",
    "board/test_faults.py::test_a_new_role_changes_tabs",
    "board/test_faults.py::test_a_page_that_is_opened_again",
    "board/test_faults.py::test_values_that_no_page_stores",
    "board/test_faults.py::test_what_changed_while_the_first_socket_failed",
    "board/test_faults.py::test_without_storage",
    "board/test_versions.py::test_a_page_that_is_older_than_the_server_waits",
    "board/test_versions.py::test_a_page_loads_anew_if_the_server_does_not_know_what_it_watches",
    "board/test_versions.py::test_a_page_waits_for_a_new_one",
    # elections and replica sets
    "infrastructure/mongo/change_stream/test_change_stream.py::test_after_an_election",
    "infrastructure/mongo/connections",
    "infrastructure/mongo/test_client.py::test_a_server_is_unavailable_until",
    "services/commands/test_unconfirmed_writes.py", "services/live/test_majority_stalls.py",
    # servers and processes that stop, freeze or slow down
    "api/endpoints/test_organizer_endpoint.py::test_an_unresponsive_mongodb",
    "api/exports/test_export_builder.py::test_an_unavailable_mongodb_fails_an_export",
    "auth/user_import/test_import_races.py::test_the_import_of_a_killed_process",
    "cli/doctor/test_doctor.py", "cli/test_main.py::test_an_unavailable_mongodb_is_reported",
    "concurrency/test_server_outages.py",
    "graphql/booking/test_booking_events.py::test_events_that_redis_lost",
    "graphql/commands/test_processes.py::test_after_a_crash_and_restart_a_key_replays_its_outcome",
    "graphql/limits/test_rates.py::test_without_redis_only_sign_ins_are_limited_by_each_process",
    "infrastructure/mongo/indexes/test_index_builds.py",
    "infrastructure/redis/outages",
    "infrastructure/redis/test_abandoned_waiters.py::test_at_most_one_waiter_of_a_killed_process",
    "services/admission/test_mongodb_unavailable.py", "services/admission/test_redis_loss.py",
    "services/admission/test_redis_topologies.py", "services/admission/test_worker_crashes.py",
    "services/commands/test_group_stalls.py",
    "services/live/test_shared_change_feed.py::test_a_lost",
    "services/live/test_shared_change_feed.py::test_another",
    "services/live/test_shared_change_feed.py::test_one",
    "services/live/test_shared_change_feed.py::test_without",
    "services/notifications/test_worker_deaths.py",
    "services/workers/test_hold_sweeper.py::test_other_holds_expire_although_a_slot_cannot_be_read",
    # clients that read or send slowly, and limits that a test waits for
    "api/server/test_connections.py::test_an_idle_connection",
    "api/server/test_connections.py::test_a_connection_with_a_request_stays_open",
    "api/server/test_slow_readers.py::test_a_client_that",
    "api/server/test_slow_readers.py::test_a_stop_waits",
    "graphql/commands/test_wait_timeouts.py::test_a_repeated_key_waits_no_longer",
    "graphql/execution/test_request_deadlines.py::test_the_time_of_a_slow_upload",
    "graphql/transport/test_lost_clients.py::test_a_client_that_answers_no_ping",
    "graphql/transport/test_lost_clients.py::test_a_client_that_reads_nothing",
    "graphql/transport/test_lost_clients.py::test_control_without_the_guard",
    "services/commands/test_late_changes.py",
    # defects of published designs, with and without the guards whose own tests run in `make test`
    "defects",
    # two versions beside each other, which wait for several sweeps
    # long campaigns and large amounts
    "api/calendars/test_published_calendars.py::test_a_calendar_with_too_many_events",
    "api/calendars/test_published_calendars.py::test_every_known_zone",
    "api/exports/test_export_builder.py::test_up_to_a_thousand_slots",
    "auth/user_import/test_import_limits.py",
    "auth/user_import/test_import_races.py::test_after_two_concurrent_imports",
    "auth/user_import/test_user_import.py::test_10_000_users",
    "concurrency/test_campaign_limits.py", "concurrency/test_host_clocks.py",
    "concurrency/test_campaign_opening.py::test_nothing_is_booked_before_the_opening",
    "concurrency/test_campaign_opening.py::test_control",
    "concurrency/test_resource_races.py::test_of_a_new_slot_and_the_deletion",
    "concurrency/test_resource_races.py::test_a_resource_that_is_deleted_before",
    "domain/schedule/test_zones.py::test_the_changes_of_every_zone",
    "domain/users/test_import_file.py::test_a_file_with_too_many_users_is_invalid",
    "graphql/booking/test_holds.py::test_1000_holds",
    "graphql/core/test_connections.py::test_pages_neither_repeat_nor_skip",
    "graphql/execution/test_memory.py::test_a_subscription_stores_no_slots",
    "graphql/limits/test_isolation.py::test_an_address_has_a_limited_number_of_attempts",
    "graphql/waitlist/test_campaign_waitlists.py::test_waitlist_entries_are_promoted_when",
    "infrastructure/mongo/slots/test_slot_lists.py::test_each_reader_gets_the_page",
    "infrastructure/mongo/test_concurrency.py::test_mongodb_stays_usable_after_thousands",
    "infrastructure/mongo/test_concurrency.py::test_event_streams_that_are_dropped",
    "infrastructure/redis/test_locks.py::test_acquisitions_cancelled_at_any_moment",
    "model_based/test_stateful.py", "services/live/test_slices.py",
)  # fmt: skip
# The same promises as with one server, with more servers; and pages without their guards.
SLOW_PARAMETERS = ("[Sentinel", "[Cluster", "-Sentinel", "-Cluster", "[control]")
# Tests that start no server: `make check` runs them.
PURE = (
    "packages", "tests/domain", "tests/graphql/schema", "tests/docs/test_style.py",
    "tests/bench/faults", "tests/cli/test_commands.py",
)  # fmt: skip
# The tests that `make test` runs after those of `make check`.
EVERYDAY = "not slow and not pure"


def tier_of(node_id: str) -> str | None:
    """Return the mark of a test: `slow`, `pure`, or None."""
    name = node_id.removeprefix("tests/")
    if name.startswith(SLOW) or any(part in name for part in SLOW_PARAMETERS):
        return "slow"
    return "pure" if node_id.startswith(PURE) else None
