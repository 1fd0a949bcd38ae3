rm -rf "$BUILD"/ "$NOTES"/*.tmp
