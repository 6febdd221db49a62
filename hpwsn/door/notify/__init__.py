"""The byte scanner for ordinary Notify requests: it turns bytes into runs without an XML tree."""
