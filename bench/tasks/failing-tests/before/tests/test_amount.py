import unittest

from money.amount import parse, show


class Amounts(unittest.TestCase):
    def test_thousands(self):
        self.assertEqual(parse("1,200"), 120000)
        self.assertEqual(parse("1,200.50"), 120050)

    def test_cents(self):
        self.assertEqual(parse("0.07"), 7)

    def test_show(self):
        self.assertEqual(show(1205), "12.05")
        self.assertEqual(show(-5), "-0.05")
