"""The color of the site on the board, as far as it can be read in light and in dark."""

from collections.abc import Callable

Color = tuple[float, ...]

# The lowest contrast of a text (WCAG AA), on the wash of its own color.
CONTRAST = 4.5
WHITE: Color = (255, 255, 255)
BLACK: Color = (0, 0, 0)
# The sheet of the dark scheme.
NIGHT: Color = (24, 27, 38)


def site_style(color: str) -> str:
    """Return the style sheet of a color, such as #2a3bb7: the custom properties of `board.css`."""
    own = tuple(bytes.fromhex(color[1:]))
    day, day_wash = _readable(own, BLACK, WHITE)
    night, night_wash = _readable(own, WHITE, NIGHT)
    panel = _until(own, BLACK, lambda each: contrast(each, WHITE) >= CONTRAST)
    values = {
        "day": day,
        "day-press": _mix(day, BLACK, 0.25),
        "day-wash": day_wash,
        "night": night,
        "night-press": _mix(night, WHITE, 0.35),
        "night-wash": night_wash,
        "on-night": _mix(own, BLACK, 0.75),
        "panel": panel,
        "panel-line": _mix(panel, WHITE, 0.3),
        "panel-soft": _mix(panel, WHITE, 0.85),
        "night-panel": _mix(panel, BLACK, 0.45),
    }
    lines = (
        f"  --site-{name}: #{bytes(map(round, value)).hex()};\n" for name, value in values.items()
    )
    return f":root {{\n{''.join(lines)}}}\n"


def contrast(one: Color, other: Color) -> float:
    """Return the contrast of two colors, 1 to 21 (WCAG 2.2)."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _readable(own: Color, towards: Color, ground: Color) -> tuple[Color, Color]:
    """Return a color that can be read on its own wash over a ground, and that wash."""

    def wash(color: Color) -> Color:
        return _mix(ground, color, 0.12)

    color = _until(own, towards, lambda each: contrast(each, wash(each)) >= CONTRAST)
    return color, wash(color)


def _until(color: Color, towards: Color, is_enough: Callable[[Color], bool]) -> Color:
    """Return the first of 21 mixtures that is enough, or the color that it goes towards."""
    mixtures = (_mix(color, towards, step / 20) for step in range(21))
    return next(filter(is_enough, mixtures), towards)


def _mix(color: Color, other: Color, share: float) -> Color:
    """Return a mixture with this share of the other color."""
    return tuple(a + (b - a) * share for a, b in zip(color, other, strict=True))


def _luminance(color: Color) -> float:
    red, green, blue = (
        each / 255 / 12.92 if each / 255 <= 0.04045 else ((each / 255 + 0.055) / 1.055) ** 2.4
        for each in color
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
