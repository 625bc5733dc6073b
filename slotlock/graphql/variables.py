"""How much the variables of a request may hold, looked at before each value gets its type.

That costs up to 10 µs a value, and 64 kB have room for 30,000 of them.
"""

# Twice what the largest request needs: a campaign of ten sets of 200 groups, with its limits.
MAX_VARIABLE_VALUES = 5_000


def has_too_many_values(variables: object) -> bool:
    """Whether there are more values, what lists and objects hold included."""
    count, rest = 0, [variables]
    while rest:
        value = rest.pop()
        if isinstance(value, dict | list):
            count += len(value)
            if count > MAX_VARIABLE_VALUES:
                return True
            rest.extend(value.values() if isinstance(value, dict) else value)
    return False
