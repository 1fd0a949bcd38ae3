for f in *.c; do case $f in a*) echo "${f%.c}" ;; *) cat <<E
$f
E
;; esac; done 2>&1 | sort >"$x"