"""Topic entries of LDAP as data: names, attributes, LDIF, and a mirror of the directory. Pure."""
