"""Rotary positions: the frequencies of config.json."""

from library import LIBRARY, f32, floats


def inverse_frequencies(config, head):
    """The table of head / 2 frequencies, and the factor of cos and sin."""
    parameters = config["rope_parameters"]
    theta = f32(parameters["rope_theta"])
    table = floats(head // 2)
    for i in range(head // 2):
        table[i] = f32(1 / LIBRARY.law_pow(theta, f32(2 * i / head)))
    return table, 1.0
