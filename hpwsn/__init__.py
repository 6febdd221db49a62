"""The HPwsn node: a WS-Notification broker.

Importing the package loads none of its parts; each is imported where it is used, so that a node without
ActiveMQ, LDAP or Spark never loads their libraries.
"""
