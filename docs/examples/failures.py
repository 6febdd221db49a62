"""What a program should expect to go wrong, and what each exception says.

Run: python docs/examples/failures.py
Prints:
    refused: there is no stored notification on topic examples:nothing
    away: cannot connect to http://127.0.0.1:9/wsn (Connection refused); start the broker, or give its URL
"""

from hpwsn_client import ConnectionFailed, SyncClient
from hpwsn_client.wsn.faults import NoCurrentMessageOnTopicFault

with SyncClient() as client:
    try:
        client.get_current_message("examples:nothing")
    except NoCurrentMessageOnTopicFault as fault:
        print("refused:", fault)

with SyncClient("http://127.0.0.1:9/wsn") as client:
    try:
        client.notify("examples:anything", "hello")
    except ConnectionFailed as error:
        print("away:", error)
