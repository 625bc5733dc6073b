"""Files with a table, such as the users or the courses of a school, and their problems."""
