# The fast part of the suite on every supported Python of this machine: sourced by scripts/test, then call `pythons`.
#
# Each Python has an environment of its own in build/pythons, filled once; the Python of .venv is tested there.
# Arguments of scripts/test that are not its own (`args`) go to each pytest, such as `-k journal`.

# All unit tests, and one scenario from end to end: nodes as processes, SOAP subscribers, publishers.
FAST_PART=(tests/unit tests/system/test_functional.py)

# pythons [EXCEPT]: runs the fast part on each supported Python but the version EXCEPT; fails if one of them fails.
pythons() {
    local except="${1:-}" python version all failed=() passed=()
    mapfile -t all < <(every_python)
    for python in "${all[@]}"; do
        version="$(version_of "$python")"
        [ "$version" != "$except" ] || continue
        if (fast_part "$python" "$version"); then passed+=("$version"); else failed+=("$version"); fi
    done
    say "fast part passed on Python: ${passed[*]:-none}${except:+ (all tests ran on $except)}"
    [ ${#failed[@]} -eq 0 ] || fail "fast part failed on Python: ${failed[*]}"
}

fast_part() {
    if [ "$2" != "$(version_of "$VENV/bin/python" 2>/dev/null)" ]; then
        VENV="$ROOT/build/pythons/$2"
        PYTHON="$1" environment dev
    fi
    say "fast part on $("$VENV/bin/python" --version)"
    "$VENV/bin/python" -m pytest -p tests.second_try -q -n "$PROCESSES" --dist loadfile "${FAST_PART[@]}" "${args[@]}"
}
