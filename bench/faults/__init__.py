"""A fault campaign: clients book while servers, links and clocks fail, and a checker judges it."""
