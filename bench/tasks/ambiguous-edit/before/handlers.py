def read(store, key):
    value = store[key]
    return 200, value


def write(store, key, value):
    store[key] = value
    return 200, None


def delete(store, key):
    del store[key]
    return 200, None
