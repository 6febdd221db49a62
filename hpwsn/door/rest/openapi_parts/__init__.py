"""The OpenAPI document in parts: one file for each subject, which hpwsn.door.rest.openapi joins."""
