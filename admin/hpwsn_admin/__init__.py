"""The admin node of a cluster and its page.

It knows nodes only by what they report; it takes no part in carrying a notification.
"""
