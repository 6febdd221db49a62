"""Events as Apache Arrow record batches; no other folder of the doors needs pyarrow."""
