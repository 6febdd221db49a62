"""What a node or an admin node measures, remembers and tells about itself.

Its modules take figures from callables and know no broker, so that both kinds of node use them. It is the
only folder that imports prometheus_client, below `metrics`.
"""
