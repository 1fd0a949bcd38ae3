"""Small repository tasks: a request, a repository before, a check of it after, and a scripted model that solves it."""
