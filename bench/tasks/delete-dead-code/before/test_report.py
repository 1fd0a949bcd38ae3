import unittest

import report


class Report(unittest.TestCase):
    def test_it(self):
        self.assertEqual(report.report("a", ["b"]), "A\n=\nb")
