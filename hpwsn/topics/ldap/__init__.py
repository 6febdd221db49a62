"""The topic directory in OpenLDAP: its entries, the connection, edits, and live changes by syncrepl.

Only `ldap_connection`, `ldap_directory` and `ldap_watch` need python-ldap; `entries` does not.
"""
