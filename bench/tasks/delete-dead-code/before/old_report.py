def report(name, rows):
    return name + str(rows)
