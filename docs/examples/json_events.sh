#!/usr/bin/env bash
# JSON over HTTP with curl: post events, and read those that pass a filter.
#
# Run: bash docs/examples/json_events.sh
# Prints:
#     "plate": "C91", "speed": 80
set -euo pipefail

broker=${HPWSN_URL:-http://127.0.0.1:8080/wsn}
events=${broker%/wsn}/topics/examples:bridge/events

answer=$(curl --silent --show-error --fail --header 'Content-Type: application/json' \
    --data '[{"plate": "B34", "speed": 51}, {"plate": "C91", "speed": 80}]' "$events")
first=$(sed 's/.*"first": \([0-9]*\).*/\1/' <<<"$answer")

curl --silent --show-error --fail --get "$events" --data "after=$((first - 1))" \
    --data-urlencode 'filter=speed > 60' | grep --only-matching '"plate".*[0-9]'
