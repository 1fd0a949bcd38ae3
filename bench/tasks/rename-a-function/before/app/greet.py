from app.users import get_user, get_users


def greet(name):
    return f"Hello {name}" if get_user(name) else f"Who is {name}? I know {', '.join(get_users())}"
