"""Users by their name."""

USERS = {"ann": 1, "bob": 2}


def get_user(name):
    return USERS.get(name)


def get_users():
    return sorted(USERS)
