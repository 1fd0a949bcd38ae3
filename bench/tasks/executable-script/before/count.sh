#!/bin/sh
# Prints how many of the files named exist.
found=0
for file in $*; do
    [ -e "$file" ] && found=$((found + 1))
done
echo "$found"
