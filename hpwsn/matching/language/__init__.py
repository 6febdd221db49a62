"""The predicate language: values, predicates, grammar, normal form, and a reference engine. Pure."""
