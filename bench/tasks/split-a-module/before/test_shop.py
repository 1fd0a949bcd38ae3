import unittest

from shop import VAT, Cart, gross


class Shop(unittest.TestCase):
    def test_total(self):
        cart = Cart()
        cart.add(10)
        cart.add(5)
        self.assertEqual(cart.total(), gross(15))
        self.assertEqual(VAT, 0.2)
