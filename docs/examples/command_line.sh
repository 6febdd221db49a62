#!/usr/bin/env bash
# Publish and listen with the command alone; `hpwsn` is in .venv/bin, the broker at $HPWSN_URL or the default.
#
# Run: bash docs/examples/command_line.sh
# Prints:
#     examples:lift:north	stuck
#     examples:lift:north	<repaired by="Ada"/>
set -euo pipefail

# A pull point exists as soon as `listen` says that it listens, so what is published after that is not missed.
ready=$(mktemp)
hpwsn listen examples:lift --pull --count 2 2>"$ready" &
until grep --quiet listening "$ready"; do sleep 0.1; done

hpwsn publish examples:lift:north "stuck"
hpwsn publish examples:lift:north '<repaired by="Ada"/>'
wait
rm "$ready"
