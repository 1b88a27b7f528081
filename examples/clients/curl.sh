#!/usr/bin/env bash
# A client of curl and a file: it remembers the id of the last event that it showed, and asks after it.
#
#     reattach chaos run --client examples/clients/curl.sh --faults fin,rst
#
# It never notices silence before curl's own limit of 20 s: with `--faults stall` it is found to hang.
remembered=$REATTACH_STATE/cursor
for _ in {1..200}; do
  after=$(cat "$remembered" 2>/dev/null)
  id='' type=''
  while IFS= read -r line; do
    case $line in
      id:*) id=${line#id: } ;;
      event:*) type=${line#event: } ;;
      '') # an event is whole at its blank line, and not before
        if [ "$id" ]; then
          echo "{\"kind\":\"rendered\",\"id\":\"$id\"}"
          echo "$id" >"$remembered"
        fi
        case $type in
          run.completed | run.failed | run.cancelled | run.paused)
            echo "{\"kind\":\"finished\",\"status\":\"${type#run.}\"}"
            exit 0
            ;;
        esac
        id='' type=''
        ;;
    esac
  done < <(curl -sN -m 20 --noproxy '*' -H "Accept: text/event-stream" -H "Authorization: Bearer $REATTACH_TOKEN" \
    ${after:+-H "Last-Event-ID: $after"} "$REATTACH_EVENTS_URL")
  sleep 0.05
done
exit 1
