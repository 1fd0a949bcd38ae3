from facts import changed, own_tests_pass, python


def check():
    own_tests_pass()
    assert changed() == {"shop.py", "shop/__init__.py", "shop/cart.py", "shop/prices.py"}, f"changed: {changed()}"
    assert (
        python("from shop import Cart, gross, VAT; print(Cart.__module__, gross.__module__)") == "shop.cart shop.prices"
    )
    assert python("import shop.prices as p; p.VAT = 1; print(p.gross(1))") == "2", "VAT does not live in shop.prices"
