"""The topic directory in OpenLDAP: its entries, the connection, edits, and live changes by syncrepl.

Only `connection`, `directory` and `watch` need python-ldap; names, entries and LDIF text do without.
"""
