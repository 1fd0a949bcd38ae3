"""Maße in Metern."""


def länge(zoll):
    return zoll * 0.0254
