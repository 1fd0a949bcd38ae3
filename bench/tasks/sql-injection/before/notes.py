"""Notes in a database."""

import sqlite3


def open_notes():
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE notes (title TEXT, private INTEGER)")
    base.executemany("INSERT INTO notes VALUES (?, ?)", [("tea", 0), ("it's", 0), ("keys", 1)])
    return base


def find(base, title):
    query = f"SELECT title FROM notes WHERE private = 0 AND title LIKE '%{title}%'"
    return [row[0] for row in base.execute(query)]
