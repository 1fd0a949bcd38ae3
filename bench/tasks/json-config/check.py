import json

from facts import BEFORE, only_changed, text


def check():
    only_changed("package.json")
    before, after = (json.loads(text("package.json", *folder)) for folder in ([BEFORE], []))
    before["scripts"]["lint"] = "eslint ."
    before["engines"]["node"] = ">=20"
    assert json.dumps(after) == json.dumps(before), "the settings, or their order, are not as wanted"
    assert '        "lint": "eslint ."\n' in text("package.json"), "the form of the file was not kept"
    assert '    "files": ["dist"]\n}\n' in text("package.json"), "the form of the file was not kept"
