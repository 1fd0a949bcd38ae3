"""For every promise of safety: a small change that breaks it, and the test that turns red. `make sabotage` shows it."""
