"""Events in Protocol Buffers; no other folder of the doors needs protobuf."""
