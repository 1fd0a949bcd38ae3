"""A small shop."""

VAT = 0.2


def gross(net):
    return round(net * (1 + VAT), 2)


class Cart:
    def __init__(self):
        self.prices = []

    def add(self, net):
        self.prices.append(net)

    def total(self):
        return gross(sum(self.prices))
