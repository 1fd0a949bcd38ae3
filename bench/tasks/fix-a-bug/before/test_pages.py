import unittest

from pages import paginate


class Pages(unittest.TestCase):
    def test_full(self):
        self.assertEqual(paginate([1, 2, 3, 4], 2), [[1, 2], [3, 4]])

    def test_rest(self):
        self.assertEqual(paginate([1, 2, 3], 2), [[1, 2], [3]])

    def test_none(self):
        self.assertEqual(paginate([], 2), [])
