"""The topic tree: topics, their subscribers, overlap of expressions, TopicSet documents. Pure."""
