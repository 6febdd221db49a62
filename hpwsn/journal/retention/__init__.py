"""What leaves the journal, by age and size, in bounded steps."""
