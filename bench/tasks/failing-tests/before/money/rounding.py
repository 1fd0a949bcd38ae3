import math


def half_up(number):
    return math.floor(number + 0.5)
