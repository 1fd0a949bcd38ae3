import unittest

from app.greet import greet
from app.users import get_user


class Users(unittest.TestCase):
    def test_known(self):
        self.assertEqual(get_user("ann"), 1)

    def test_greeting(self):
        self.assertIn("Hello", greet("bob"))
